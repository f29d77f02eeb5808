// What a person decides about is shown with every character that is in it.

/** Controls, which a line and a tab are not here; what turns the direction of text or has no shape. The terminal escapes the same. */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** What belongs to the letter or emoji before it. */
const JOINERS = new Set(['\u200c', '\u200d', '\ufe0e', '\ufe0f']);

/**
 * A text in which what is invisible, or turns text around, is written as an escape such as `\u{202e}`.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HIDDEN, (character, at) => {
    const before = [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? '';
    if (joins(before, character)) return character;
    return character === '\r' ? '\\r' : `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/**
 * @param {string} before
 * @param {string} character
 */
function joins(before, character) {
  if (!JOINERS.has(character)) return false;
  // Emoji are put together by a joiner behind the sign for a picture.
  return before === '\ufe0f' ? character === '\u200d' : before > '\u007f' && before.search(HIDDEN) < 0;
}
