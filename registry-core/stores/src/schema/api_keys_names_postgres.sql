-- Keys that were made before have no name, and their last use is not known.
ALTER TABLE api_keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN last_used_at TEXT COLLATE "C" NOT NULL DEFAULT '';
