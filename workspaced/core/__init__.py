"""Values and rules that every layer uses: problems, fields of a body, text, instants, JSON."""
