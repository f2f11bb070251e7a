"""The web pages at ``/ui``. The server renders them from what the API responds to the user's API key."""
