"""The bytes of files: received on the disk, stored in a folder or in a bucket of S3, and named by rows of the database."""
