-- All that a block holds; lists are JSON, and multiplicity is the text of a number, so that its digits stay.

ALTER TABLE block ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE block ADD COLUMN part_number TEXT NOT NULL DEFAULT '';
ALTER TABLE block ADD COLUMN multiplicity TEXT NOT NULL DEFAULT '1';
ALTER TABLE block ADD COLUMN pdm_enabled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE block ADD COLUMN property_groups TEXT NOT NULL DEFAULT '[]';
ALTER TABLE block ADD COLUMN instances TEXT NOT NULL DEFAULT '[]';
ALTER TABLE block ADD COLUMN preview_custom_link TEXT NOT NULL DEFAULT '';
ALTER TABLE block ADD COLUMN preview_source TEXT NOT NULL DEFAULT '';
ALTER TABLE block ADD COLUMN figures TEXT NOT NULL DEFAULT '[]';
ALTER TABLE block ADD COLUMN icon TEXT NOT NULL DEFAULT '';
ALTER TABLE block ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]';
ALTER TABLE block ADD COLUMN external_links TEXT NOT NULL DEFAULT '[]';
ALTER TABLE block ADD COLUMN pdm_thumbnail TEXT NOT NULL DEFAULT '';
ALTER TABLE block ADD COLUMN block_statuses TEXT NOT NULL DEFAULT '[]';
ALTER TABLE block ADD COLUMN type TEXT NOT NULL DEFAULT '[]';

-- Children in their order; and, for the reference to the parent, without the workspace in front.
DROP INDEX block_by_workspace;
CREATE INDEX block_by_workspace ON block (workspace, parent_id, order_index, id);
CREATE INDEX block_by_parent ON block (parent_id);

ALTER TABLE workspace ADD COLUMN block_count INTEGER NOT NULL DEFAULT 0;
UPDATE workspace SET block_count = (SELECT count(*) FROM block WHERE block.workspace = workspace.number);
