"""The web pages at ``/ui``. The server renders them from responses of the API to requests with the user's API key."""
