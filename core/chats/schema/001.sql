CREATE TABLE chats (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',
    model TEXT,
    system_prompt TEXT NOT NULL DEFAULT '',
    sampling TEXT NOT NULL DEFAULT '{}',
    leaf TEXT,
    created REAL NOT NULL,
    updated REAL NOT NULL
);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    parent_id TEXT REFERENCES messages (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    content TEXT NOT NULL,
    model TEXT,
    stats TEXT,
    error TEXT,
    state TEXT NOT NULL CHECK (state IN ('done', 'writing', 'cancelled', 'failed')),
    created REAL NOT NULL
);

CREATE INDEX messages_chat ON messages (chat_id, position);
CREATE INDEX messages_parent ON messages (parent_id);
CREATE INDEX messages_writing ON messages (chat_id) WHERE state = 'writing';
CREATE INDEX chats_updated ON chats (updated);
