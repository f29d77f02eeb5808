// What a server says while pictures are taken that have to be the same each time.

export const NOW = new Date('2026-03-02T09:30:00Z');

const none = { daily_limit: { value: 0, from: 'tool', own: 0 }, cooldown_seconds: { value: 0, from: 'tool', own: 0 } };
const tool = (name, about) => ({
  name, module: 'local', title: null, description: `${name} does what it says.`, version: '1.0.0', level: 'user', effect: 'read', reads: [], sends: 'nothing', flow_declared: true, limits: none, tags: [],
  enabled: true, reason: null, tokens: 120, deferred: false, source: `tools/${name}.rs:12`, replaces: null, deprecated: null,
  parameters: { type: 'object', properties: { text: { type: 'string', description: 'What it is about.' } }, required: ['text'] }, output_schema: null, ...about,
});
const TOOLS = [
  tool('calculate', { title: 'Calculator', description: 'Evaluate an arithmetic expression exactly.', level: 'guest' }),
  tool('drop_file', { description: 'Drops a file for good.', effect: 'destructive', tokens: 64 }),
  tool('send_mail', { description: 'Sends a mail.', effect: 'write', sends: 'outside', limits: { ...none, daily_limit: { value: 20, from: 'admin', own: 0 } } }),
  tool('web_search', { description: 'Searches the web.', enabled: false, reason: 'needs a search service: set `url` under [search]', reads: ['untrusted'] }),
];

const settings = { model: null, system: 'Answer briefly.', temperature: 0.7, top_p: null, max_tokens: null, thinking: null, tools: null, persona: null };
const message = (id, parent, role, parts, about = {}) => ({
  id, parent, role, created_at: '2026-03-02T09:20:00Z', status: 'done', model: role === 'user' ? null : 'qwen3:8b', parts, finish_reason: null, usage: null, duration_ms: null, error: null, ...about,
});
const ANSWER = `The sum is **483**, by \`calculate\`.

| step | value |
|---|---:|
| 17 + 4 | 21 |
| 21 · 23 | 483 |

- [x] checked
- [ ] rounded

\`\`\`python
print((17 + 4) * 23)  # 483
\`\`\`

> A note in a quotation.`;
const call = {
  type: 'call', id: 'c1', name: 'calculate', dialect: null, state: 'ok', arguments: { expression: '(17 + 4) * 23' }, asked_for: null, message: null, progress: null, approval: null, reason: null, question: null,
  answer_by: null, result: { result: '483', exact: true }, error: null, said: null, side_effects: [], duration_ms: 12, retry_at: null, parts: [],
};
const CHAT = {
  id: 'chat_1', title: 'A sum', titled_by: 'model', pinned: true, running: false, created_at: '2026-03-02T09:20:00Z', updated_at: '2026-03-02T09:21:00Z', settings, leaf: 'm2', turn: null,
  messages: [
    message('m1', null, 'user', [{ type: 'text', text: 'What is (17 + 4) * 23? Show the steps.' }]),
    message('m2', 'm1', 'assistant', [{ type: 'reasoning', text: 'I should calculate.', ms: 900 }, call, { type: 'text', text: ANSWER }], {
      finish_reason: 'stop', usage: { prompt_tokens: 664, completion_tokens: 48, total_tokens: 712 }, duration_ms: 1400,
    }),
  ],
};
const listed = ({ id, title, titled_by, pinned, running, created_at, updated_at }) => ({ id, title, titled_by, pinned, running, created_at, updated_at });

const APPROVAL = {
  id: 'a1', tool: 'drop_file', arguments: { path: 'notes/2026/march.md' }, user: 'ada', reason: null, requested_at: '2026-03-02T09:28:00Z', expires_at: '2026-03-02T09:34:30Z',
  remember: [{ scope: 'chat', chat: 'chat_1' }, { scope: 'arguments', arguments: { path: 'notes/2026/march.md' } }, { scope: 'folder', argument: 'path', folder: 'notes/2026', others: {} }],
};

const record = (seq, about) => ({
  server: 'main', seq, previous: '0', sha256: '0',
  record: {
    phase: 'outcome', tool: 'calculate', call_id: `call-${seq}`, user: 'ada', level: 'user', origin: 'native', arguments: { expression: '(17 + 4) * 23' }, success: true, error: null, error_message: null, duration_ms: 12,
    ts: '2026-03-02T09:20:05Z', decision: { verdict: 'allow' }, ...about,
  },
});

const AUDIT = [record(3, {}), record(2, { tool: 'drop_file', success: false, error: 'refused', error_message: 'ada has refused the call', duration_ms: 4100, ts: '2026-03-02T09:12:00Z' }), record(1, { tool: 'toolrack user add', origin: 'http', arguments: { user: 'max', level: 'user' }, ts: '2026-02-05T08:00:00Z' })];

/** Each answer by its path. */
export const ANSWERS = {
  '/readyz': { status: 'ready' },
  '/healthz': { status: 'ok', upstream: 'ollama', model: 'qwen3:8b', tools: 3, sign_in: false, dev: false },
  '/v1/models': { object: 'list', data: ['qwen3:8b', 'gpt-oss:20b'].map((id) => ({ id, object: 'model', created: 0, owned_by: 'ollama' })) },
  '/api/account': { user: 'ada', level: 'owner', tenant: 'default', configured: false, operator: true },
  '/api/tools': { tools: TOOLS },
  '/api/chats': { chats: [listed(CHAT), { ...listed(CHAT), id: 'chat_2', title: 'Trains to Lyon', pinned: false, updated_at: '2026-03-01T18:00:00Z' }], next: null },
  '/api/chats/chat_1': CHAT,
  '/api/chats/chat_1/documents': { documents: [] },
  '/api/approvals': { approvals: [APPROVAL] },
  '/api/approval-rules': { rules: [{ id: 'r1', tool: 'drop_file', scope: 'folder', argument: 'path', folder: 'drafts', others: {}, made_at: '2026-03-01T12:00:00Z', applies: true, via: null, user: 'max' }], next: null },
  '/api/questions': { questions: [] },
  '/api/personas': { personas: [{ name: 'reading', allowed_modules: ['research'], users: ['max'] }] },
  '/api/documents': {
    documents: [{ path: 'uploads/ada/coffee.md', title: 'Coffee', kind: 'markdown', bytes: 5120, passages: 12, modified: null, added: '2026-03-01T12:00:00Z', removable: true }],
    total: 1, may_add: true, extensions: ['md'], max_bytes: 52428800,
  },
  '/api/documents/processing': { embedding_model: 'bge-m3', unextracted: 12, extracts: false, extraction: null },
  '/api/users': { users: [
    { id: 'ada', level: 'admin', personas: [], created_at: '2026-01-05T08:00:00Z', keys: 1 },
    { id: 'max', level: 'user', personas: ['reading'], created_at: '2026-02-05T08:00:00Z', keys: 0 },
  ] },
  '/api/keys': { keys: [{ id: '3f9a1c20', user: 'ada', name: 'laptop', delegate: false, created_at: '2026-01-05T08:00:00Z', expires_at: null, last_used_at: '2026-03-05T08:00:00Z', revoked_at: null }] },
  '/api/modules': { modules: [{ name: 'weather', tools: 2, breaker: 'closed', address: 'http://127.0.0.1:9000', error: null, changes: [] }] },
  '/api/mcp-servers': { mcp_servers: [{ name: 'notes', tools: 5, breaker: 'open', state: 'away', url: 'https://notes.example/mcp', error: 'connection refused', pinned: true, changes: [] }, {
    name: 'tracker', tools: 2, breaker: 'closed', state: 'connected', url: 'https://tracker.example/mcp', error: null, pinned: true, digest: 'd1', faults: [], duplicates: [],
    changes: [{ tool: 'tracker.close', parts: ['description'] }],
    differences: [{ tool: 'tracker.close', part: 'description', before: 'Closes an issue.', after: 'Closes an issue, and all that it names.' }],
  }] },
  '/api/connected-accounts': { accounts: [{ server: 'tracker', user: 'max', issuer: 'https://id.example', since: '2026-02-20T09:00:00Z' }] },
  '/api/turns': { turns: [{ id: '7', server: null, user: 'max', since: '2026-03-02T09:29:00Z', chat: null, model: 'qwen3:8b', rounds: 2, tools: ['web_search'], trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' }] },
  '/api/traces': { traces: [
    { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', name: 'invoke_agent toolrack', model: 'qwen3:8b', calls: 1, began: '2026-03-02T09:20:00Z', duration_ms: 1400, failed: false },
    { trace_id: '4bf92f3577b34da6a3ce929d0e0e4735', name: 'execute_tool drop_file', model: null, calls: 1, began: '2026-03-02T09:12:00Z', duration_ms: 4100, failed: true },
  ] },
  '/api/traces/call-3': { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', spans: [
    { id: '1', parent: null, name: 'chat qwen3:8b', began: '2026-03-02T09:20:00.000Z', duration_ms: 1400, attributes: {}, error: null },
    { id: '2', parent: '1', name: 'execute_tool calculate', began: '2026-03-02T09:20:00.900Z', duration_ms: 12, attributes: {}, error: null },
  ] },
  '/api/jobs': { jobs: [{
    id: 'j1', user: 'ada', tool: 'web_search', arguments: { query: 'trains' }, cron: '30 8 * * MON-FRI', time_zone: 'Europe/Vienna', next_run: '2026-03-03T07:30:00Z',
    last_run: { call_id: 'call-2', at: '2026-03-02T07:30:00Z', success: false, error: 'the search service is away' },
  }] },
  '/api/webhooks': { webhooks: [{ url: 'https://hooks.example/tools', all_tenants: false, waiting: 0 }] },
  '/api/dead-letters': { dead_letters: [{ id: 'msg_1', url: 'https://hooks.example/tools', event: { tool: 'web_search', kind: 'disabled' }, attempts: 5, cause: 'it answered 503', ts: '2026-03-01T22:10:00Z' }] },
  '/api/upstreams': { upstreams: [
    { name: 'default', address: 'http://127.0.0.1:11434/v1', kind: 'Ollama', models: 2, error: null, fallback: 'spare' },
    { name: 'spare', address: 'http://gpu:8080/v1', kind: null, models: null, error: 'cannot reach the model server at http://gpu:8080/v1: connection refused', fallback: null },
  ] },
  '/api/doctor': { running: false, model: null, looks_at: null, seconds: null, report: null, error: null },
  '/api/restore': { uploaded: null },
  '/api/settings': { settings: [
    { key: 'limits.max_rounds', value: 10, hidden: false, from: 'default', place: null },
    { key: 'upstream_api_key', value: null, hidden: true, from: 'environment', place: 'TOOLRACK_UPSTREAM_API_KEY' },
    { key: 'user.level', value: 'admin', hidden: false, from: 'file', place: 'toolrack.toml:3' },
  ] },
  '/api/audit/figures': { tools: [{ tool: 'calculate', calls: 1, failed: 0, median_ms: 12 }, { tool: 'drop_file', calls: 1, failed: 1, median_ms: 4100 }], counted_since: null },
  '/api/audit': (/** @type {any} */ route) => {
    const only = new URL(route.request().url()).searchParams.get('only');
    return route.fulfill({ json: { records: AUDIT.filter(({ success }) => only !== 'failure' || !success), next: null } });
  },
};

/** A chat whose answer is under way with these parts, and what else its server says. */
export const running = (parts, more = {}) => ({
  ...ANSWERS,
  '/api/chats/chat_1': { ...CHAT, turn: { message: 'm2', position: 0, here: true }, messages: [CHAT.messages[0], { ...CHAT.messages[1], status: 'running', parts }] },
  '/api/approvals': { approvals: [] },
  // It says nothing more.
  '/api/chats/chat_1/turn': () => {},
  ...more,
});

/** A call of that chat that waits for a yes. */
export const ASKING = {
  ...call, id: 'c2', name: 'drop_file', state: 'running', arguments: { path: 'notes/2026/march.md' }, result: null, duration_ms: null, approval: 'a1', answer_by: APPROVAL.expires_at,
};
