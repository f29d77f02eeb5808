// What the console asks the server for, besides what the chat asks.

import { checked, getAll, getJson, send } from '../state/api.js';
import { serverNow } from '../state/clock.js';

/** @import { ApprovalRule, Library, Tool } from '../state/types.d.ts' */

/** @typedef {{ id: string, level: string, personas: string[], created_at: string, keys: number }} User */
/** @typedef {{ id: string, user: string, name: string, delegate: boolean, created_at: string, expires_at: string | null, last_used_at: string | null, revoked_at: string | null }} Key */
/** @typedef {{ name: string, allowed_modules: string[], users?: string[] }} Persona */
/**
 * @typedef {object} Entry
 * @property {string} server
 * @property {number} seq
 * @property {{ phase: string, tool: string, call_id: string, user: string, via?: string, level: string, origin: any, arguments?: unknown,
 *   decision?: { verdict: string, by?: string }, success: boolean | null, error: string | null, error_message: string | null,
 *   duration_ms: number | null, ts: string, parent_call_id?: string }} record
 */
/** @typedef {{ seq: number, at: string }} NotedRecord */
/** @typedef {{ kind: 'missing' | 'wrong_link' | 'changed' | 'rewritten' | 'cut_off', seq: number } | { kind: 'no_proof', cause: string } | { kind: 'foreign_proof' }} ChainFault */
/** @typedef {{ records: number, sha256: string, erased: number, removed: NotedRecord | null, signed: NotedRecord | null, fault: ChainFault | null }} Findings */
/** @typedef {{ whole: boolean, faults: string[], chains: { server: string, whole: boolean, findings: Findings }[] }} Verdict */
/** @typedef {{ id: string, user: string, tool: string, arguments: Record<string, unknown>, cron: string, time_zone: string, next_run: string, last_run: { call_id: string, at: string, success: boolean, error: string | null } | null }} Job */
/** @typedef {{ url: string, all_tenants: boolean, waiting: number }} Webhook */
/** @typedef {{ name: string, address: string, kind: string | null, models: number | null, error: string | null, fallback: string | null }} ModelServer */
/** @typedef {{ path: string, title: string, section: string, place: string, text: string }} Passage */
/** @typedef {{ embedding_model: string | null, unextracted: number | null, extracts: boolean, extraction: { running: boolean, passages: number, failed: number, names: number, relations: number, tokens: number, error: string | null } | null }} DocumentProcessing */
/** @typedef {{ format: string, definitions: unknown, notes: string[] }} Definitions */
/** @typedef {{ tools: number, tokens: number, budget: number, faults: string[], warnings: string[] }} Checked */
/** @typedef {{ id: string, url: string, event: any, attempts: number, cause: string, ts: string }} Letter */
/** @typedef {{ id: string, parent: string | null, name: string, began: string, duration_ms: number, attributes: Record<string, unknown>, error: string | null }} Span */
/** @typedef {{ trace_id: string, name: string, model: string | null, calls: number, began: string, duration_ms: number, failed: boolean }} ListedTrace */
/** @typedef {{ verdict: string, right?: number, tries?: number, dialect?: string, note?: string, tokens_per_second?: number, tokens?: number }} Finding */
/** @typedef {{ model: string, server: { address: string, kind: string | null }, seconds: number, requests: number, probes: Record<string, Finding>, toml: string | null, advice: string[] }} Report */
/** @typedef {{ question: string, tries: number, chosen: number, right: number, before: { tries: number, right: number } | null, advice: string[] }} Tried */
/** @typedef {{ model: string, tools: number, examples: Tried[] }} TrialReport */
/** @typedef {{ running: boolean, tool: string | null, looks_at: string | null, seconds: number | null, report: TrialReport | null, error: string | null }} TrialState */
/** @typedef {{ running: boolean, model: string | null, looks_at: string | null, seconds: number | null, report: Report | null, error: string | null }} DoctorState */
/** @typedef {{ id: string, server: string | null, user: string, since: string, chat: string | null, model: string | null, rounds: number, tools: string[], trace_id: string | null }} Turn */
/** @typedef {{ id: string, user: string, tool: string, arguments: Record<string, unknown>, reason: string | null, expires_at: string, deadline: number }} WaitingCall `deadline` by this machine's clock */
/** @typedef {ApprovalRule & { user: string }} UsersRule */
/** @typedef {{ server: string, user: string | null, since: string, issuer: string | null }} ConnectedAccount */
/** @typedef {{ was_known: boolean, keys: number, sessions: number, chats: number, connections: number, responses: number, transcripts: number, files: number, documents: number, values: number, jobs: number, approvals: number, records: number }} Erased */
/** @typedef {{ waits: boolean, made_at: string, toolrack: string, server: string, parts: string[], bytes: number, by: string, at: string, error: string | null }} UploadedBackup */
/** @typedef {{ key: string, value: unknown, hidden: boolean, from: string, place: string | null }} Setting */
/**
 * @typedef {object} Remote
 * @property {string} name
 * @property {number} tools
 * @property {string} breaker
 * @property {string} [state]
 * @property {string | null} [error]
 * @property {string} [url]
 * @property {string} [address]
 * @property {string | null} [version]
 * @property {boolean} [pinned]
 * @property {string} [digest]
 * @property {{ tool: string, parts: string[] }[]} [changes]
 * @property {{ tool: string, part: string, before: string | null, after: string }[]} [differences]
 * @property {{ tool: string, message: string, taken: boolean }[]} [faults]
 * @property {string[]} [duplicates]
 */

/** @param {string} address */
const remove = (address) => checked(address, { method: 'DELETE' });

const name = encodeURIComponent;

/** Whether the server takes requests, and its store what is written; refused with what is wrong. */
export const ready = () => getJson('readyz');

/**
 * The tools as a user of a level sees them, and under a persona; empty for one's own.
 * @param {string} level
 * @param {string} persona
 * @returns {Promise<Tool[]>}
 */
export const toolsAs = async (level, persona) => (await getJson(`api/tools?${new URLSearchParams({ level, persona })}`)).tools;

/** @param {string} tool @param {boolean} enabled */
export const switchTool = (tool, enabled) => send(`api/tools/${name(tool)}`, { enabled });

/**
 * Sets limits in place of a tool's own; what is not named is as the tool has it.
 * @param {string} tool
 * @param {{ daily_limit?: number, cooldown_seconds?: number }} limits
 */
export const limitTool = (tool, limits) => send(`api/tools/${name(tool)}`, { limits });

/** @param {unknown} spec */
export const registerTool = (spec) => send('api/tools', spec);
/** @param {string} tool */
export const removeTool = (tool) => remove(`api/tools/${name(tool)}`);

/**
 * Calls a tool. A call that waits for a person is answered so many seconds later, and with the id of its approval or question where it still
 * waits then; it is to be made again once that is answered.
 * @param {string} tool
 * @param {Record<string, unknown>} args
 * @param {number} seconds
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export const execute = async (tool, args, seconds, signal) =>
  (await send('execute', { tool_name: tool, arguments: args, approval_wait_seconds: seconds }, signal)).json();

/**
 * The calls of all users that wait for a person. The time that is left is that of the server, whose clock may be another.
 * @returns {Promise<WaitingCall[]>}
 */
export async function waitingCalls() {
  /** @type {WaitingCall[]} */
  const calls = await getAll('api/approvals', 'approvals');
  return calls.map((one) => ({ ...one, deadline: Date.now() + Date.parse(one.expires_at) - serverNow() }));
}

/**
 * What users have allowed beforehand, some users at a time: those behind one.
 * @param {string} after
 * @returns {Promise<{ rules: UsersRule[], next: string | null }>}
 */
export const approvalRules = (after) => getJson(`api/approval-rules?${new URLSearchParams({ all: 'true', after })}`);
/** @param {string} id @param {string} user */
export const revokeRule = (id, user) => remove(`api/approval-rules/${name(id)}?${new URLSearchParams({ user })}`);

/** @returns {Promise<User[]>} */
export const users = () => getAll('api/users', 'users');
/** @param {string} id @param {string} level */
export const addUser = (id, level) => send('api/users', { id, level });
/** @param {string} id @param {string} level */
export const promote = (id, level) => send(`api/users/${name(id)}`, { level });
/** @param {string} id */
export const removeUser = (id) => remove(`api/users/${name(id)}`);
/** @param {string} id @returns {Promise<Erased>} */
export const eraseUser = async (id) => (await send(`api/users/${name(id)}/erase`, {})).json();
/**
 * Changes the personas of a user from what they are by now: another admin may have changed them.
 * @param {string} id
 * @param {(personas: string[]) => string[]} changed
 */
export async function assign(id, changed) {
  const now = (await users()).find((one) => one.id === id)?.personas ?? [];
  return send(`api/users/${name(id)}/personas`, { personas: changed(now) });
}

/** @returns {Promise<Key[]>} */
export const keys = () => getAll('api/keys', 'keys');
/** @param {string} user @param {string} name @param {boolean} delegate @param {Date | null} until @returns {Promise<Key & { key: string }>} */
export const createKey = async (user, name, delegate, until) => (await send('api/keys', { user, name, delegate, expires_at: until })).json();
/** @param {string} id */
export const revokeKey = (id) => remove(`api/keys/${name(id)}`);

/** @returns {Promise<Persona[]>} */
export const personas = () => getAll('api/personas', 'personas');
/** @param {string} persona @param {string[]} modules */
export const addPersona = (persona, modules) => send('api/personas', { name: persona, allowed_modules: modules });
/**
 * Gives a persona a module, or takes it away. The others are as they are by now: another admin may have changed them.
 * @param {string} persona
 * @param {string} module
 * @param {boolean} allowed
 */
export async function allowModule(persona, module, allowed) {
  const others = ((await personas()).find((one) => one.name === persona)?.allowed_modules ?? []).filter((one) => one !== module);
  return send(`api/personas/${name(persona)}`, { allowed_modules: allowed ? [...others, module] : others });
}
/** @param {string} persona @param {boolean} force */
export const removePersona = (persona, force) => remove(`api/personas/${name(persona)}?force=${force}`);

/** @param {Record<string, string>} query @returns {Promise<{ records: Entry[], next: number | null }>} */
export const audit = (query) => getJson(`api/audit?${new URLSearchParams(query)}`);
/**
 * How the calls of each tool went that ended from a time on, or of all.
 * @param {string | null} since
 * @returns {Promise<{ tools: { tool: string, calls: number, failed: number, median_ms: number | null }[], counted_since: string | null }>}
 */
export const callFigures = (since) => getJson(`api/audit/figures${since === null ? '' : `?${new URLSearchParams({ since })}`}`);
/** @param {Record<string, string>} query */
export const exportAudit = async (query) => (await checked(`api/audit/export?${new URLSearchParams(query)}`, {})).blob();
/**
 * Verifies the audit: with this server's own signed heads, or with those of a file and the public keys of who has signed them.
 * @param {{ heads: string, public_keys: string[] } | null} given
 * @returns {Promise<Verdict>}
 */
export const verifyAudit = async (given) => (given === null ? getJson('api/audit/verify') : (await send('api/audit/verify', given)).json());

/** The public key of the signed heads; null where there is none yet. @returns {Promise<{ public_key: string | null }>} */
export const auditKey = () => getJson('api/audit/key');
export const rotateAuditKey = () => send('api/audit/rotate-key', {});

/** @returns {Promise<ListedTrace[]>} */
export const traces = async () => (await getJson('api/traces')).traces;
/** @param {string} id @returns {Promise<{ trace_id: string, spans: Span[] }>} */
export const trace = (id) => getJson(`api/traces/${name(id)}`);

/** @returns {Promise<Remote[]>} */
export const modules = async () => (await getJson('api/modules')).modules;
/** @returns {Promise<Remote[]>} */
export const mcpServers = async () => (await getJson('api/mcp-servers')).mcp_servers;
/** @param {'modules' | 'mcp-servers'} kind @param {string} server @param {string} digest */
export const accept = (kind, server, digest) => send(`api/${kind}/${name(server)}/accept`, { digest });
export const refresh = () => send('refresh-tools', {});

/** @returns {Promise<ConnectedAccount[]>} */
export const accounts = () => getAll('api/connected-accounts', 'accounts');
/** @param {string} server @param {string | null} user */
export const revokeAccount = (server, user) => remove(`api/connected-accounts/${name(server)}${user === null ? '' : `?user=${name(user)}`}`);

/** A backup of all that is stored, with the name of its file. */
export async function backup() {
  const answer = await checked('api/backup', { method: 'POST' });
  const [, given] = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '') ?? [];
  return { content: await answer.blob(), name: given ?? 'toolrack.tar.gz' };
}

/** The backup that was uploaded and is not in place. @returns {Promise<{ uploaded: UploadedBackup | null }>} */
export const uploaded = () => getJson('api/restore');
/** @param {File} file */
export const upload = (file) => checked('api/restore', { method: 'POST', headers: { 'content-type': 'application/gzip' }, body: file });
export const deleteUploaded = () => remove('api/restore');

/** @returns {Promise<ModelServer[]>} */
export const upstreams = async () => (await getJson('api/upstreams')).upstreams;

/**
 * The first documents in a folder, or of all, with how many there are.
 * @param {string} below
 * @returns {Promise<Library>}
 */
export const documentsBelow = (below) => getJson(`api/documents?${new URLSearchParams({ below })}`);

// Of all documents, or of those in a folder.

/** @param {string} below @returns {Promise<DocumentProcessing>} */
export const processing = (below) => getJson(`api/documents/processing?${new URLSearchParams({ below })}`);
/** @param {string} below */
export const embedAgain = (below) => send(`api/documents/embed-again?${new URLSearchParams({ below })}`, {});
/** @param {string} below */
export const extractNames = (below) => send(`api/documents/extract?${new URLSearchParams({ below })}`, {});
export const stopExtracting = () => remove('api/documents/extract');

/** @param {string} query @returns {Promise<Passage[]>} */
export const searchDocuments = async (query) => (await getJson(`api/documents/search?${new URLSearchParams({ query })}`)).passages;

/** @param {string} format @param {boolean} strict @returns {Promise<Definitions>} */
export const definitions = (format, strict) => getJson(`api/tool-definitions?${new URLSearchParams({ format, strict: String(strict) })}`);
/** @param {string} budget empty for the usual one @returns {Promise<Checked>} */
export const checkTools = (budget) => getJson(`api/tool-check${budget === '' ? '' : `?budget=${budget}`}`);

/** @returns {Promise<TrialState>} */
export const toolTrial = () => getJson('api/tool-trial');
/** @param {string} tool @param {number} tries */
export const tryTool = (tool, tries) => send('api/tool-trial', { tool, tries });
export const stopTrial = () => remove('api/tool-trial');

/** @returns {Promise<DoctorState>} */
export const doctor = () => getJson('api/doctor');
/** @param {{ model?: string | undefined, template?: string | undefined, seconds?: number | undefined }} asked */
export const askDoctor = (asked) => send('api/doctor', asked);
export const stopDoctor = () => remove('api/doctor');
/** @returns {Promise<string>} */
export const writeDoctor = async () => (await (await send('api/doctor/settings', {})).json()).written;

/** @returns {Promise<Turn[]>} */
export const turns = async () => (await getJson('api/turns')).turns;
/** @param {string} id @param {string | null} server */
export const stopTurn = (id, server) => remove(`api/turns/${name(id)}${server === null ? '' : `?server=${name(server)}`}`);

/** @returns {Promise<Setting[]>} */
export const settings = async () => (await getJson('api/settings')).settings;

/** @returns {Promise<Job[]>} */
export const jobs = () => getAll('api/jobs', 'jobs');
/** @param {string} id */
export const removeJob = (id) => remove(`api/jobs/${name(id)}`);

/** @returns {Promise<Webhook[]>} */
export const webhooks = async () => (await getJson('api/webhooks')).webhooks;
/** @returns {Promise<Letter[]>} */
export const letters = () => getAll('api/dead-letters', 'dead_letters');
/** @param {string} id */
export const redeliver = (id) => send(`api/dead-letters/${name(id)}`, {});
