"""What the pages of both programs share: the style sheet, the names of asset files, and the forms of texts and numbers."""
