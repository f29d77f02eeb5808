-- What the model gets of a message, which whoever shows a chat does not read. Of earlier messages it stands in the document.
ALTER TABLE chat_messages ADD COLUMN context TEXT NOT NULL DEFAULT '';
