"""Parts that the web pages of both programs share: style sheet, asset files, and the formatting of texts and numbers."""
