// What the console asks the server for, besides what the chat asks.

import { checked, getJson, send } from '../state/api.js';

/** @typedef {{ id: string, level: string, personas: string[], created_at: string, keys: number }} User */
/** @typedef {{ id: string, user: string, delegate: boolean, created_at: string, revoked_at: string | null }} Key */
/** @typedef {{ name: string, allowed_modules: string[], users?: string[] }} Persona */
/**
 * @typedef {object} Entry
 * @property {string} server
 * @property {number} seq
 * @property {{ phase: string, tool: string, call_id: string, user: string, via?: string, level: string, origin: any, arguments?: unknown,
 *   decision?: { verdict: string, by?: string }, success: boolean | null, error: string | null, error_message: string | null,
 *   duration_ms: number | null, ts: string, parent_call_id?: string }} record
 */
/** @typedef {{ whole: boolean, faults: string[], chains: { server: string, whole: boolean, found: string }[] }} Verdict */
/** @typedef {{ id: string, user: string, tool: string, arguments: Record<string, unknown>, cron: string, time_zone: string, next_run: string, last_run: { call_id: string, at: string, success: boolean, error: string | null } | null }} Job */
/** @typedef {{ id: string, url: string, event: any, attempts: number, cause: string, ts: string }} Letter */
/** @typedef {{ id: string, parent: string | null, name: string, began: string, duration_ms: number, attributes: Record<string, unknown>, error: string | null }} Span */
/** @typedef {{ verdict: string, right?: number, tries?: number, dialect?: string, note?: string, tokens_per_second?: number, tokens?: number }} Finding */
/** @typedef {{ model: string, server: { address: string, kind: string | null }, seconds: number, requests: number, probes: Record<string, Finding>, toml: string | null, advice: string[] }} Report */
/** @typedef {{ running: boolean, model: string | null, looks_at: string | null, seconds: number | null, report: Report | null, error: string | null }} DoctorState */
/** @typedef {{ id: string, server: string | null, user: string, since: string, chat: string | null, model: string | null, rounds: number, tools: string[], trace_id: string | null }} Turn */
/** @typedef {{ server: string, user: string | null, since: string, issuer: string | null }} ConnectedAccount */
/** @typedef {{ was_known: boolean, keys: number, sessions: number, chats: number, connections: number, responses: number, transcripts: number, files: number, documents: number, values: number, jobs: number, approvals: number, records: number }} Erased */
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
 * @property {{ tool: string, message: string, taken: boolean }[]} [faults]
 * @property {string[]} [duplicates]
 */

/** @param {string} address */
const remove = (address) => checked(address, { method: 'DELETE' });

const name = encodeURIComponent;

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
 * Calls a tool. A call that waits for a person says so, and goes on when it is answered.
 * @param {string} tool
 * @param {Record<string, unknown>} args
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export const execute = async (tool, args, signal) =>
  (await send('execute', { tool_name: tool, arguments: args, approval_wait_seconds: 300 }, signal)).json();

/** @returns {Promise<User[]>} */
export const users = async () => (await getJson('api/users')).users;
/** @param {string} id @param {string} level */
export const addUser = (id, level) => send('api/users', { id, level });
/** @param {string} id @param {string} level */
export const promote = (id, level) => send(`api/users/${name(id)}`, { level });
/** @param {string} id */
export const removeUser = (id) => remove(`api/users/${name(id)}`);
/** @param {string} id @returns {Promise<Erased>} */
export const eraseUser = async (id) => (await send(`api/users/${name(id)}/erase`, {})).json();
/** @param {string} id @param {string[]} personas */
export const assign = (id, personas) => send(`api/users/${name(id)}/personas`, { personas });

/** @returns {Promise<Key[]>} */
export const keys = async () => (await getJson('api/keys')).keys;
/** @param {string} user @param {boolean} delegate @returns {Promise<Key & { key: string }>} */
export const createKey = async (user, delegate) => (await send('api/keys', { user, delegate })).json();
/** @param {string} id */
export const revokeKey = (id) => remove(`api/keys/${name(id)}`);

/** @returns {Promise<Persona[]>} */
export const personas = async () => (await getJson('api/personas')).personas;
/** @param {string} persona @param {string[]} modules */
export const addPersona = (persona, modules) => send('api/personas', { name: persona, allowed_modules: modules });
/** @param {string} persona @param {string[]} modules */
export const changePersona = (persona, modules) => send(`api/personas/${name(persona)}`, { allowed_modules: modules });
/** @param {string} persona @param {boolean} force */
export const removePersona = (persona, force) => remove(`api/personas/${name(persona)}?force=${force}`);

/** @param {Record<string, string>} query @returns {Promise<{ records: Entry[], next: number | null }>} */
export const audit = (query) => getJson(`api/audit?${new URLSearchParams(query)}`);
/** @param {Record<string, string>} query */
export const exportAudit = async (query) => (await checked(`api/audit/export?${new URLSearchParams(query)}`, {})).blob();
/** @returns {Promise<Verdict>} */
export const verifyAudit = () => getJson('api/audit/verify');

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
export const accounts = async () => (await getJson('api/connected-accounts')).accounts;
/** @param {string} server @param {string | null} user */
export const revokeAccount = (server, user) => remove(`api/connected-accounts/${name(server)}${user === null ? '' : `?user=${name(user)}`}`);

/** A backup of all that is stored, with the name of its file. */
export async function backup() {
  const answer = await checked('api/backup', { method: 'POST' });
  const [, given] = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '') ?? [];
  return { content: await answer.blob(), name: given ?? 'toolrack.tar.gz' };
}

/** @returns {Promise<DoctorState>} */
export const doctor = () => getJson('api/doctor');
/** @param {string} model */
export const askDoctor = (model) => send('api/doctor', model === '' ? {} : { model });
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
export const jobs = async () => (await getJson('api/jobs')).jobs;
/** @param {string} id */
export const removeJob = (id) => remove(`api/jobs/${name(id)}`);

/** @returns {Promise<Letter[]>} */
export const letters = async () => (await getJson('api/dead-letters')).dead_letters;
/** @param {string} id */
export const redeliver = (id) => send(`api/dead-letters/${name(id)}`, {});
