// The passages of documents that an answer rests on: what its calls have found, in one order, each once.

/** @import { Message, Source } from './types.d.ts' */

/** @type {WeakMap<object, Source[]>} */
const known = new WeakMap();

/**
 * @param {Message} message
 * @returns {Source[]}
 */
export function sourcesOf(message) {
  /** @type {Map<string, Source>} */
  const found = new Map();
  for (const part of message.parts) {
    if (part.type !== 'call' || part.state !== 'ok') continue;
    for (const source of sourcesIn(part)) {
      const key = JSON.stringify([source.path, source.place]);
      const before = found.get(key);
      if (!before) found.set(key, { ...source, number: found.size + 1 });
      else found.set(key, { ...before, text: before.text || source.text, cited: [...before.cited, ...source.cited] });
    }
  }
  return [...found.values()];
}

/** @param {import('./types.d.ts').CallPart} call */
function sourcesIn(call) {
  const { result } = call;
  if (typeof result !== 'object' || result === null) return read(result);
  const before = known.get(result);
  if (before) return before;
  const sources = read(result);
  known.set(result, sources);
  return sources;
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
