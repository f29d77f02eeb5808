// Files and folders as they are dropped, chosen or pasted.

/** @import { Picked } from './types.d.ts' */

const TEXTS = /\.(?:c|cc|cfg|conf|cpp|cs|css|csv|env|go|h|hpp|html?|ini|java|js|json|jsonl|jsx|kt|log|lua|md|mjs|php|pl|ps1|py|r|rb|rs|scala|sh|sql|svg|swift|tex|toml|ts|tsv|tsx|txt|vue|xml|ya?ml|zig)$/i;

/**
 * Whether a file is a text that a model can read as it is.
 * @param {string} name
 * @param {File} file
 */
export const isText = (name, file) => file.type.startsWith('text/') || TEXTS.test(name) || file.type === 'application/json';

/** How much of a file tells whether it is a text, in bytes. */
const BEGINNING = 4096;

/**
 * Whether a file begins as texts do.
 * @param {File} file
 */
export const isPlain = async (file) => !new Uint8Array(await file.slice(0, BEGINNING).arrayBuffer()).includes(0);

/**
 * What was chosen in a file picker.
 * @param {HTMLInputElement} input
 * @returns {Picked[]}
 */
export function chosen(input) {
  const files = [...(input.files ?? [])].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
  // So that the same can be chosen once more.
  input.value = '';
  return files;
}

/**
 * What was dropped, with all that is in folders.
 * @param {DataTransfer} transfer
 */
export async function dropped(transfer) {
  // All at once: the transfer is empty after the event.
  const items = [...transfer.items].filter((item) => item.kind === 'file');
  const entries = items.map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  /** @type {Picked[]} */
  const found = [];
  for (const entry of entries) {
    if (entry instanceof File) found.push({ name: entry.name, file: entry });
    else if (entry) await walk(entry, '', found);
  }
  return found;
}

/**
 * @param {FileSystemEntry} entry
 * @param {string} folder
 * @param {Picked[]} found
 */
async function walk(entry, folder, found) {
  const name = folder + entry.name;
  if (entry.isFile) {
    // One that cannot be opened has no file.
    const file = await new Promise((resolve) => { /** @type {FileSystemFileEntry} */ (entry).file(resolve, () => resolve(null)); });
    found.push({ name, file });
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    // In parts, the last of which is empty.
    /** @type {FileSystemEntry[]} */
    const part = await new Promise((resolve) => { reader.readEntries(resolve, () => resolve([])); });
    if (part.length === 0) return;
    for (const inner of part) await walk(inner, `${name}/`, found);
  }
}
