//! Chats. Their messages go with them, by the foreign key.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Row, SqlStore, Statement, Value, statement};
use registry_core::store::{
    ChatChange, ChatError, ChatKey, ChatLimits, ChatMessage, ChatQuery, ChatStore, FoundChat, StoreError,
    StoreResult, StoredChat, StoredTurn, fold,
};

/// A chat of a user.
const HERE: &str = "tenant = $1 AND user_id = $2 AND id = $3";
/// The messages of a chat.
const IN_CHAT: &str = "tenant = $1 AND user_id = $2 AND chat = $3";
const COLUMNS: &str =
    "id, title, titled_by, pinned, created_at, updated_at, leaf, settings, turn, turn_seen_at";
const MESSAGE: &str = "id, parent, created_at, text, document, context";
/// A message without what the model gets of it.
const SHOWN: &str = "id, parent, created_at, text, document, ''";

/// Adds a chat, where the user has room for another one.
const BEGIN: &str = "INSERT INTO chats (tenant, user_id, id, title, words, titled_by, pinned, created_at, updated_at, leaf, settings,
        turn, turn_seen_at, turn_stops, size)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '', '', 0, $14
    WHERE (SELECT COUNT(*) < $12 FROM chats WHERE tenant = $1 AND user_id = $2)
    AND (SELECT COALESCE(SUM(size), 0) + $14 < $13 FROM chats WHERE tenant = $1 AND user_id = $2)
    RETURNING id";

/// Adds a message to a chat that has room for all `$10` bytes and `$11` messages of which it is one.
const ADD: &str =
    "INSERT INTO chat_messages (tenant, user_id, chat, id, parent, created_at, size, words, text, document, context)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $14, $16 FROM chats
    WHERE tenant = $1 AND user_id = $2 AND id = $3 AND size + $10 <= $12
    AND (SELECT COUNT(*) + $11 <= $13 FROM chat_messages WHERE tenant = $1 AND user_id = $2 AND chat = $3)
    AND (SELECT COALESCE(SUM(size), 0) + $10 <= $15 FROM chats WHERE tenant = $1 AND user_id = $2)
    RETURNING id";

/// What all chats of the user take.
const OF_USER: &str = "(SELECT COALESCE(SUM(of_user.size), 0) FROM chats of_user WHERE of_user.tenant = $1 AND of_user.user_id = $2)";

/// Counts what the settings and the messages of a chat take.
const COUNT: &str =
    "UPDATE chats SET size = OCTET_LENGTH(settings) + (SELECT CAST(COALESCE(SUM(m.size), 0) AS BIGINT) FROM chat_messages m
        WHERE m.tenant = $1 AND m.user_id = $2 AND m.chat = $3)
    WHERE tenant = $1 AND user_id = $2 AND id = $3";

/// Claims a chat for the turn `$4`, where none runs that was heard of after `$6`, and no more than `$7` do of the user.
const CLAIM: &str = "UPDATE chats SET turn = $4, turn_seen_at = $5, turn_stops = 0
    WHERE tenant = $1 AND user_id = $2 AND id = $3 AND (turn = '' OR turn_seen_at <= $6)
    AND (SELECT COUNT(*) < $7 FROM chats WHERE tenant = $1 AND user_id = $2 AND turn <> '' AND turn_seen_at > $6)
    RETURNING id";

fn place(key: ChatKey<'_>) -> Vec<Value> {
    vec![key.tenant.into(), key.user.into(), key.id.into()]
}

/// A statement about one chat, with more values.
fn of_chat(sql: impl Into<std::borrow::Cow<'static, str>>, key: ChatKey<'_>, more: Vec<Value>) -> Statement {
    Statement::new(sql, place(key).into_iter().chain(more).collect())
}

fn chat(row: &mut Row) -> StoreResult<StoredChat> {
    let (id, title, titled_by) = (row.string()?, row.string()?, row.string()?);
    let (pinned, created_at, updated_at) = (row.int()? != 0, row.time()?, row.time()?);
    let (leaf, settings, turn, seen_at) = (row.string()?, row.text()?, row.string()?, row.text()?);
    let turn = match turn.is_empty() {
        true => None,
        false => Some(StoredTurn { id: turn, seen_at: seen_at.parse().map_err(StoreError::corrupt)? }),
    };
    Ok(StoredChat { id, title, titled_by, pinned, created_at, updated_at, leaf, settings, turn })
}

fn message(mut row: Row) -> StoreResult<ChatMessage> {
    let (id, parent) = (row.string()?, row.string()?);
    let parent = Some(parent).filter(|parent| !parent.is_empty());
    let (created_at, text, document, context) = (row.time()?, row.string()?, row.text()?, row.text()?);
    Ok(ChatMessage { id, parent, created_at, text, document, context })
}

/// A text as a database can keep it.
fn kept(text: &str) -> String {
    text.replace('\0', " ")
}

/// A pattern of `LIKE … ESCAPE '!'` for texts that have a word in them.
fn pattern(word: &str) -> Value {
    let word = word.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{word}%").into()
}

/// The list of a user's chats.
fn list((tenant, user): (&str, &str), query: &ChatQuery) -> Statement {
    let mut values: Vec<Value> = vec![tenant.into(), user.into()];
    let mut parameter = |value: Value| {
        values.push(value);
        format!("${}", values.len())
    };
    let words: Vec<String> = query.words.iter().map(|word| parameter(pattern(&kept(word)))).collect();
    let has_all = |column: &str| {
        let conditions: Vec<String> =
            words.iter().map(|word| format!("{column} LIKE {word} ESCAPE '!'")).collect();
        conditions.join(" AND ")
    };
    let found = match words.is_empty() {
        true => "''".to_owned(),
        false => format!(
            "COALESCE((SELECT m.id FROM chat_messages m WHERE m.tenant = c.tenant AND m.user_id = c.user_id AND m.chat = c.id \
             AND {} ORDER BY m.created_at DESC, m.id DESC LIMIT 1), '')",
            has_all("m.words")
        ),
    };
    let behind = query.after.as_ref().map_or_else(String::new, |(pinned, updated_at, id)| {
        let place = [(*pinned).into(), (*updated_at).into(), id.as_str().into()].map(&mut parameter);
        format!(" AND (c.pinned, c.updated_at, c.id) < ({})", place.join(", "))
    });
    let limit = parameter(query.limit.into());
    let chats = format!(
        "SELECT {COLUMNS}, words, {found} AS found FROM chats c WHERE c.tenant = $1 AND c.user_id = $2{behind}"
    );
    let matching = match words.is_empty() {
        true => String::new(),
        false => format!(" WHERE f.found <> '' OR ({})", has_all("f.words")),
    };
    // A list shows none of the settings, which may be long.
    let columns = COLUMNS.replace("settings", "'' AS settings");
    let text = "COALESCE((SELECT m.text FROM chat_messages m \
                WHERE m.tenant = $1 AND m.user_id = $2 AND m.chat = f.id AND m.id = f.found), '')";
    let sql = format!(
        "SELECT {columns}, found, {text} FROM ({chats}) f{matching} \
         ORDER BY pinned DESC, updated_at DESC, id DESC LIMIT {limit}"
    );
    Statement::new(sql, values)
}

#[async_trait]
impl ChatStore for SqlStore {
    async fn begin_chat(
        &self,
        (tenant, user): (&str, &str),
        chat: StoredChat,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        let StoredChat { id, title, titled_by, pinned, created_at, updated_at, leaf, settings, turn: _ } =
            chat;
        let size = settings.len();
        let begin = statement!(
            BEGIN,
            tenant,
            user,
            id,
            kept(&title),
            fold(&title),
            titled_by,
            pinned,
            created_at,
            updated_at,
            leaf,
            settings,
            limits.max_chats,
            limits.max_user_bytes,
            size
        );
        match self.takes_effect(begin).await? {
            true => Ok(()),
            false => Err(ChatError::TooManyChats { max: limits.max_chats, bytes: limits.max_user_bytes }),
        }
    }

    async fn chat(&self, key: ChatKey<'_>) -> StoreResult<Option<StoredChat>> {
        let find = of_chat(format!("SELECT {COLUMNS} FROM chats WHERE {HERE}"), key, Vec::new());
        self.read_one(find, |mut row| chat(&mut row)).await
    }

    async fn chats(&self, owner: (&str, &str), query: &ChatQuery) -> StoreResult<Vec<FoundChat>> {
        let read = |mut row: Row| {
            let chat = chat(&mut row)?;
            let (id, text) = (row.string()?, row.string()?);
            Ok(FoundChat { chat, message: Some((id, text)).filter(|(id, _)| !id.is_empty()) })
        };
        match query.words.is_empty() {
            true => self.read(list(owner, query), read).await,
            false => self.search(list(owner, query), read).await,
        }
    }

    async fn change_chat(&self, key: ChatKey<'_>, change: ChatChange) -> StoreResult<bool> {
        let ChatChange { title, if_titled_by, pinned, leaf, settings, if_settings, max_user_bytes } = change;
        let size = settings.as_ref().map(|settings| settings.len());
        let (mut values, mut sets) = (place(key), vec!["id = id".to_owned()]);
        let mut set = |column: &str, value: Value| {
            values.push(value);
            sets.push(format!("{column} = ${}", values.len()));
        };
        if let Some((title, by)) = title {
            set("title", kept(&title).into());
            set("words", fold(&title).into());
            set("titled_by", by.into());
        }
        pinned.into_iter().for_each(|pinned| set("pinned", pinned.into()));
        leaf.into_iter().for_each(|leaf| set("leaf", leaf.into()));
        settings.into_iter().for_each(|settings| set("settings", settings.into()));
        let mut condition = String::new();
        let mut only_if = |column: &str, value: Value| {
            values.push(value);
            condition.push_str(&format!(" AND {column} = ${}", values.len()));
        };
        if_titled_by.into_iter().for_each(|by| only_if("titled_by", by.into()));
        if_settings.into_iter().for_each(|settings| only_if("settings", settings.into()));
        if let (Some(size), Some(most)) = (size, max_user_bytes) {
            values.extend([size.into(), most.into()]);
            let (size, most) = (values.len() - 1, values.len());
            condition.push_str(&format!(" AND (${size} <= OCTET_LENGTH(settings) OR {OF_USER} + ${size} - OCTET_LENGTH(settings) <= ${most})"));
        }
        let sql = format!("UPDATE chats SET {} WHERE {HERE}{condition} RETURNING id", sets.join(", "));
        let mut statements = vec![Statement::new(sql, values)];
        statements.extend(size.map(|_| of_chat(COUNT, key, Vec::new())));
        let rows = self.write_all(statements).await?;
        Ok(rows.first().is_some_and(|changed| !changed.is_empty()))
    }

    async fn delete_chat(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        let delete = of_chat(format!("DELETE FROM chats WHERE {HERE} RETURNING id"), key, Vec::new());
        self.takes_effect(delete).await
    }

    async fn add_chat_messages(
        &self,
        key: ChatKey<'_>,
        messages: Vec<ChatMessage>,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        let Some((leaf, at)) = messages.last().map(|last| (last.id.clone(), last.created_at)) else {
            return Ok(());
        };
        // None is added without the others: what they take together is not counted before the last one.
        let (bytes, number) = (messages.iter().map(ChatMessage::size).sum::<u64>(), messages.len());
        let find = of_chat(format!("SELECT size FROM chats WHERE {HERE}"), key, Vec::new());
        if find.is_about_nothing() {
            return Err(ChatError::Unknown);
        }
        let mut statements = vec![find];
        for (before, message) in messages.into_iter().enumerate() {
            let size = message.size();
            let ChatMessage { id, parent, created_at, text, document, context } = message;
            let more: Vec<Value> = vec![
                id.into(),
                parent.unwrap_or_default().into(),
                created_at.into(),
                size.into(),
                fold(&text).into(),
                kept(&text).into(),
                bytes.into(),
                (number - before).into(),
                limits.max_chat_bytes.into(),
                limits.max_messages.into(),
                document.into(),
                limits.max_user_bytes.into(),
                context.into(),
            ];
            statements.push(of_chat(ADD, key, more));
        }
        let shown = format!(
            "UPDATE chats SET leaf = $4, updated_at = $5 WHERE {HERE} \
                 AND EXISTS (SELECT 1 FROM chat_messages WHERE {IN_CHAT} AND id = $4)"
        );
        statements.push(of_chat(shown, key, vec![leaf.into(), at.into()]));
        statements.push(of_chat(COUNT, key, Vec::new()));
        let mut rows = self.write_all(statements).await?.into_iter();
        let known = rows.next().and_then(|mut rows| rows.pop());
        let known = known.map(|mut row| row.count::<u64>()).transpose().map_err(|error| self.named(error))?;
        let ChatLimits { max_chats, max_user_bytes, max_messages, max_chat_bytes, .. } = *limits;
        let is_added = rows.next().is_some_and(|added| !added.is_empty());
        match known {
            None => Err(ChatError::Unknown),
            Some(_) if is_added => Ok(()),
            Some(size)
                if size.saturating_add(bytes) <= max_chat_bytes
                    && !self.is_long(key, number, max_messages).await? =>
            {
                Err(ChatError::TooManyChats { max: max_chats, bytes: max_user_bytes })
            }
            Some(_) => Err(ChatError::ChatFull { max: max_messages, bytes: max_chat_bytes }),
        }
    }

    async fn put_chat_message(&self, key: ChatKey<'_>, message: ChatMessage) -> StoreResult<bool> {
        let size = message.size();
        let ChatMessage { id, text, document, context, .. } = message;
        let put = format!(
            "UPDATE chat_messages SET size = $5, words = $6, text = $7, document = $8, context = $9 \
                 WHERE {IN_CHAT} AND id = $4 RETURNING id"
        );
        let more: Vec<Value> = vec![
            id.into(),
            size.into(),
            fold(&text).into(),
            kept(&text).into(),
            document.into(),
            context.into(),
        ];
        let count = of_chat(COUNT, key, Vec::new());
        let rows = self.write_all(vec![of_chat(put, key, more), count]).await?;
        Ok(rows.first().is_some_and(|put| !put.is_empty()))
    }

    async fn chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        self.all_messages(key, SHOWN).await
    }

    async fn whole_chat_messages(&self, key: ChatKey<'_>) -> StoreResult<Vec<ChatMessage>> {
        self.all_messages(key, MESSAGE).await
    }

    async fn chat_message(&self, key: ChatKey<'_>, id: &str) -> StoreResult<Option<ChatMessage>> {
        let sql = format!("SELECT {MESSAGE} FROM chat_messages WHERE {IN_CHAT} AND id = $4");
        let find = of_chat(sql, key, vec![id.into()]);
        self.read_one(find, message).await
    }

    async fn delete_chat_messages(&self, key: ChatKey<'_>, ids: &[String], leaf: &str) -> StoreResult<()> {
        let delete = format!("DELETE FROM chat_messages WHERE {IN_CHAT} AND id = $4");
        let delete = ids.iter().map(|id| of_chat(delete.clone(), key, vec![id.as_str().into()]));
        let show = of_chat(format!("UPDATE chats SET leaf = $4 WHERE {HERE}"), key, vec![leaf.into()]);
        let statements = delete.chain([show, of_chat(COUNT, key, Vec::new())]).collect();
        self.write_all(statements).await.map(drop)
    }

    async fn begin_chat_turn(
        &self,
        key: ChatKey<'_>,
        turn: &str,
        now: Timestamp,
        limits: &ChatLimits,
    ) -> Result<(), ChatError> {
        let Some(before) = self.chat(key).await? else { return Err(ChatError::Unknown) };
        let since = limits.since(now);
        let more = vec![turn.into(), now.into(), since.into(), limits.max_turns.into()];
        match self.run(of_chat(CLAIM, key, more)).await?.is_empty() {
            false => Ok(()),
            true if before.running(since).is_some() => Err(ChatError::TurnRunning),
            // Another one may have begun meanwhile.
            true => match self.chat(key).await? {
                None => Err(ChatError::Unknown),
                Some(chat) if chat.running(since).is_some() => Err(ChatError::TurnRunning),
                Some(_) => Err(ChatError::TooManyTurns { max: limits.max_turns }),
            },
        }
    }

    async fn hold_chat_turn(&self, key: ChatKey<'_>, turn: &str, now: Timestamp) -> StoreResult<bool> {
        let sql =
            format!("UPDATE chats SET turn_seen_at = $5 WHERE {HERE} AND turn = $4 RETURNING turn_stops");
        let hold = of_chat(sql, key, vec![turn.into(), now.into()]);
        let held = self.run(hold).await?.pop();
        held.map_or(Ok(true), |mut row| row.int().map(|stops| stops != 0)).map_err(|error| self.named(error))
    }

    async fn stop_chat_turn(&self, key: ChatKey<'_>) -> StoreResult<bool> {
        let sql = format!("UPDATE chats SET turn_stops = 1 WHERE {HERE} AND turn <> '' RETURNING id");
        let stop = of_chat(sql, key, Vec::new());
        self.takes_effect(stop).await
    }

    async fn end_chat_turn(&self, key: ChatKey<'_>, turn: &str) -> StoreResult<()> {
        let sql = format!("UPDATE chats SET turn = '', turn_stops = 0 WHERE {HERE} AND turn = $4");
        let end = of_chat(sql, key, vec![turn.into()]);
        self.run(end).await.map(drop)
    }
}

impl SqlStore {
    async fn all_messages(&self, key: ChatKey<'_>, columns: &str) -> StoreResult<Vec<ChatMessage>> {
        let sql = format!("SELECT {columns} FROM chat_messages WHERE {IN_CHAT} ORDER BY created_at, id");
        self.read(of_chat(sql, key, Vec::new()), message).await
    }

    /// Whether a chat with so many more messages has more than it may have.
    async fn is_long(&self, key: ChatKey<'_>, more: usize, max: usize) -> StoreResult<bool> {
        let count = of_chat(format!("SELECT COUNT(*) FROM chat_messages WHERE {IN_CHAT}"), key, Vec::new());
        let count = self.read_one(count, |mut row| row.count::<usize>()).await?.unwrap_or_default();
        Ok(count.saturating_add(more) > max)
    }
}
