-- Keys that more than one partition names. `entry` has the value of one partition, and here are those of the others: what the
-- entry becomes if its partition no longer names it. The columns are those of `entry`.
CREATE TABLE also_named (
  sink      INTEGER NOT NULL,
  key       TEXT NOT NULL,
  partition INTEGER NOT NULL,
  run       INTEGER NOT NULL,
  value     TEXT,
  data_type TEXT NOT NULL,
  row_hash  INTEGER NOT NULL,
  position  BLOB,
  PRIMARY KEY (sink, key, partition)
) WITHOUT ROWID;
CREATE INDEX also_named_by_partition ON also_named (partition, position);

-- A conflict is a name of another pipeline.
INSERT INTO also_named (sink, key, partition, run, value, data_type, row_hash, position)
SELECT sink, key, partition, run, value, data_type, coalesce(row_hash, 0), position FROM rejected WHERE subject = 'conflict'
ON CONFLICT DO NOTHING;

-- Keys and labels are in the Unicode form NFC now, as the service stores them. `other_form`: the keys that were not, or that the
-- service cannot tell from another one. Their partitions are read from their start, and the values of the latter are sent again,
-- because the service has the one that was written last.
CREATE TEMP TABLE other_form AS
SELECT sink, nfc(key) AS key, count(*) AS forms, sum(nfc(key) <> key) AS changed FROM entry
WHERE key GLOB '*[^' || char(1) || '-' || char(127) || ']*' GROUP BY sink, nfc(key) HAVING sum(nfc(key) <> key) > 0;
UPDATE partition SET cursor = CASE WHEN replayable THEN NULL ELSE cursor END, valid_through = -1 WHERE id IN (
  SELECT e.partition FROM entry e WHERE e.key GLOB '*[^' || char(1) || '-' || char(127) || ']*'
    AND EXISTS (SELECT 1 FROM temp.other_form f WHERE f.sink = e.sink AND f.key = nfc(e.key)));
UPDATE entry SET data_type = '' WHERE key GLOB '*[^' || char(1) || '-' || char(127) || ']*'
  AND EXISTS (SELECT 1 FROM temp.other_form f WHERE f.sink = entry.sink AND f.key = nfc(entry.key) AND f.forms > 1);
UPDATE OR REPLACE entry SET key = nfc(key) WHERE key GLOB '*[^' || char(1) || '-' || char(127) || ']*' AND nfc(key) <> key;
UPDATE segment SET body = (
  SELECT CAST(json_group_array(json(item)) AS BLOB) FROM (
    SELECT json_set(j.value, '$.key', nfc(j.value ->> 'key')) AS item, max(j.id)
    FROM json_each(CAST(segment.body AS TEXT)) j GROUP BY nfc(j.value ->> 'key') ORDER BY max(j.id)))
WHERE sink IN (SELECT sink FROM temp.other_form)
  AND EXISTS (SELECT 1 FROM json_each(CAST(segment.body AS TEXT)) j WHERE nfc(j.value ->> 'key') <> j.value ->> 'key');
UPDATE segment SET items = json_array_length(CAST(body AS TEXT)), bytes = length(body), live = (
  SELECT count(*) FROM json_each(CAST(segment.body AS TEXT)) j
  CROSS JOIN entry e ON e.sink = segment.sink AND e.key = j.value ->> 'key' WHERE e.segment = segment.id)
WHERE sink IN (SELECT sink FROM temp.other_form);
DELETE FROM segment WHERE live = 0 AND sink IN (SELECT sink FROM temp.other_form);
DROP TABLE temp.other_form;
UPDATE OR REPLACE also_named SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE OR REPLACE staging SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE OR REPLACE dropped SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE OR REPLACE drift SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE OR REPLACE gone SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE rejected SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE refusal SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE former SET key = nfc(key) WHERE nfc(key) <> key;
UPDATE OR IGNORE sink SET name = nfc(name), workspace = nfc(workspace) WHERE nfc(name) <> name OR nfc(workspace) <> workspace;
