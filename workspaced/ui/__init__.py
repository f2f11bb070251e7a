"""The web pages at ``/ui``, rendered on the server from the API's responses to the signed-in key."""
