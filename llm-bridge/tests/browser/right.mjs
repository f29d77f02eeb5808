// A chat in a language that is written from the right, and a page in one.

import { ANSWERS } from './kept_data.mjs';

const CHAT = ANSWERS['/api/chats/chat_1'];

const HEBREW = 'שלום עולם, מה שלומך היום?';
/** An answer in another way of writing, with what stays from the left. */
const ANSWER = `# ${HEBREW}\n\n${HEBREW} \`code\` (a) $x^2$.\n\n- ${HEBREW}\n\n| ${HEBREW} | 2 |\n|---|---:|\n| a | 1 |\n\n\`\`\`python\nprint(1)  # ${HEBREW}\n\`\`\`\n\nAnd a line in English.`;
export const FROM_THE_RIGHT = {
  ...ANSWERS,
  '/api/chats/chat_1': { ...CHAT, title: HEBREW, messages: [{ ...CHAT.messages[0], parts: [{ type: 'text', text: HEBREW }] }, { ...CHAT.messages[1], parts: [CHAT.messages[1].parts[1], { type: 'text', text: ANSWER }] }] },
};
/**
 * As if there were a file of another language: the English one, changed.
 * @param {string} code
 */
export const withLanguage = (code, change = (text) => text) => async (one) => {
  await one.route(/\/(admin)?(#.*)?$/, async (route) => {
    const page = await route.fetch();
    return route.fulfill({ response: page, body: (await page.text()).replace(/data-languages="[^"]*"/, `data-languages="de en ${code}"`) });
  });
  await one.route(`**/page/*/languages/${code}.js`, async (route) => {
    const english = await route.fetch({ url: route.request().url().replace(`${code}.js`, 'en.js') });
    return route.fulfill({ contentType: 'text/javascript', body: change(await english.text()) });
  });
};
export const hebrew = withLanguage('he');
