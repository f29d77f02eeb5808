CREATE TABLE personas (
    tenant TEXT NOT NULL, name TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

-- A user's own list of modules becomes a persona with the user's id as its name. The list stays in the user's document, where servers of the
-- version before still read it.
INSERT INTO personas (tenant, name, document)
    SELECT tenant, id, json_object(
        'name', id, 'allowed_modules', json_extract(document, '$.allowed_modules'), 'created_at', json_extract(document, '$.created_at')
    ) FROM users WHERE json_type(document, '$.allowed_modules') = 'array';
UPDATE users SET document = json_set(document, '$.personas', json_array(id))
    WHERE json_type(document, '$.allowed_modules') = 'array';
