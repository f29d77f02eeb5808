CREATE TABLE personas (
    tenant TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- A user's own list of modules becomes a persona with the user's id as its name. The list stays in the user's document, where servers of the
-- version before still read it.
INSERT INTO personas (tenant, name, document)
    SELECT tenant, id, json_build_object(
        'name', id, 'allowed_modules', document::json -> 'allowed_modules', 'created_at', document::json -> 'created_at'
    )::text FROM users WHERE json_typeof(document::json -> 'allowed_modules') = 'array';
UPDATE users SET document = jsonb_set(document::jsonb, '{personas}', jsonb_build_array(id))::text
    WHERE json_typeof(document::json -> 'allowed_modules') = 'array';
