// The passages of documents that an answer rests on: what its calls have found, in one order, each once.

/** @import { CallPart, Message, Part, Source } from './types.d.ts' */

/** So many passages of an answer have notes. */
const MOST = 500;

/** @type {readonly Source[]} */
const NONE = Object.freeze([]);

/**
 * What the parts of an answer give: of those at the begin whose calls are over once, as an answer grows with each frame. `all` is another
 * list as soon as there is more in it.
 * @typedef {{ over: number, found: Map<string, Source>, all: readonly Source[] }} Given
 * @type {WeakMap<Part[], Given>}
 */
const given = new WeakMap();

/**
 * @param {Message} message
 * @returns {readonly Source[]}
 */
export function sourcesOf({ parts }) {
  let known = given.get(parts);
  if (!known) given.set(parts, known = { over: 0, found: new Map(), all: NONE });
  const { found } = known;
  let isMore = false;
  for (; known.over < parts.length; known.over += 1) {
    const part = parts[known.over];
    if (part?.type === 'call' && (part.state === 'running' || part.state === 'writing')) break;
    if (part?.type === 'call') isMore = add(found, part) || isMore;
  }
  if (isMore) known.all = Object.freeze([...found.values()]);
  const ahead = parts.slice(known.over).filter((part) => part.type === 'call' && part.state === 'ok');
  if (ahead.length === 0) return known.all;
  // Behind a call that still runs.
  const all = new Map([...found].map(([key, source]) => [key, { ...source, cited: [...source.cited] }]));
  for (const call of ahead) add(all, /** @type {CallPart} */ (call));
  return [...all.values()];
}

/**
 * Takes in what a call has found; whether anything of it is new.
 * @param {Map<string, Source>} found
 * @param {CallPart} call
 */
function add(found, { state, result }) {
  let isNew = false;
  for (const source of state === 'ok' ? read(result) : []) {
    const key = JSON.stringify([source.path, source.place]);
    const before = found.get(key);
    const cited = source.cited.filter((number) => !before?.cited.includes(number));
    if (before && (cited.length > 0 || (!before.text && source.text))) {
      before.text ||= source.text;
      before.cited.push(...cited);
      isNew = true;
    } else if (!before && found.size < MOST) {
      found.set(key, { ...source, number: found.size + 1 });
      isNew = true;
    }
  }
  return isNew;
}

/**
 * `passages` are those of a search, `sources` those that an analysis cites, with the numbers by which it does.
 * @param {any} result
 * @returns {Source[]}
 */
function read(result) {
  const rows = [result?.passages, result?.sources].flatMap((list) => (Array.isArray(list) ? list : []));
  return rows.filter((row) => typeof row?.source === 'string' && typeof row.place === 'string').map((row) => ({
    number: 0, path: row.source, section: String(row.section ?? ''), place: row.place, text: typeof row.text === 'string' ? row.text : '',
    cited: Number.isInteger(row.number) ? [row.number] : [],
  }));
}

/** The file's name. @param {Source} source */
export const nameOf = ({ path }) => path.split(/[\\/]/).at(-1) || path;
