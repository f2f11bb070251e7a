"""Parts that the pages of both programs share: style sheet, names of asset files, forms of texts and numbers."""
