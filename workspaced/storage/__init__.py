"""The service's database and file storage: one interface (`port`), with SQLite and PostgreSQL behind it."""
