// The words of a search in a message that has them.

/** So many of them are marked. */
const MOST = 200;

/**
 * Where they stand, in the order of the text.
 * @param {Element} element
 * @param {string[]} words in lower case
 */
export function rangesOf(element, words) {
  /** @type {Range[]} */
  const ranges = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < MOST) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (!node.parentElement?.closest('.text, .asked')) continue;
    const text = node.data.toLowerCase();
    // Some letters are longer in lower case.
    if (text.length !== node.length) continue;
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0 && ranges.length < MOST; at = text.indexOf(word, at + word.length)) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  return ranges;
}

/**
 * Marks them, where the browser can without a change of the page.
 * @param {Range[]} ranges
 */
export function mark(ranges) {
  if ('highlights' in CSS) CSS.highlights.set('found', new Highlight(...ranges));
}
