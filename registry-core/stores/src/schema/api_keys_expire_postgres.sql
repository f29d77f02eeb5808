-- Keys that were made before hold until they are revoked.
ALTER TABLE api_keys ADD COLUMN expires_at TEXT COLLATE "C" NOT NULL DEFAULT '';
