CREATE TABLE modules (
    name TEXT NOT NULL, what TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (name, what)
);
