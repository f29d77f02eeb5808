-- Those that were asked before are counted for nobody, and expire soon.
ALTER TABLE approvals ADD COLUMN asker TEXT NOT NULL DEFAULT '';
CREATE INDEX approvals_by_asker ON approvals (asker, state);
