"""The page to look at it: ``/ui``, rendered here, out of what the API answers to the key that signed in."""
