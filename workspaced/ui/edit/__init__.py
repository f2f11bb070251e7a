"""Changes by users: each form and each action becomes one request to the API, with the permissions of the key."""
