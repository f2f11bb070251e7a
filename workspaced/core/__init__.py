"""Values and rules that every layer uses: problems, members of bodies, records, text, timestamps, JSON."""
