-- A shared lock: while a writing transaction that has read a setting is open, no other transaction can change the setting.

-- hold: read
FOR SHARE
