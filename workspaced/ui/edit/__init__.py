"""Forms and actions with which users change data. They send requests to the API, with the permissions of the user's key."""
