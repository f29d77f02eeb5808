// The chat page in a real browser, against a running server with the demo model.
//
//   TOOLRACK_URL   address of the server, default http://127.0.0.1:7331/
//   TOOLRACK_MAIL_URL  address of a server whose model does what mails say; without it that part is left out
//   TOOLRACK_ADMIN_URL  address of a server whose user is an admin, for the console
//   TOOLRACK_HOOK_URL  who is told of that server's changes of tools
//   TOOLRACK_MODEL_URL, TOOLRACK_MODEL_FILE  a server whose model the doctor asks, and its configuration
//   TEA_DOCX       a document of Word about tea
//   CHROMIUM       the browser, default /usr/bin/chromium
//   LOOKS          folder with the pictures of the main views that are kept; NEW_LOOKS=1 makes them anew
//   SHOTS          folder for screenshots; none are taken without it
//
// playwright-core comes from `npm install` here, from NODE_PATH, or from the
// node_modules of the working directory.

import { approvals } from './approvals.mjs';
import { desktop, keyed, phone } from './chat.mjs';
import { chats, chatsOnPhone } from './chats.mjs';
import { clauses } from './clauses.mjs';
import { consoleDoctor, consoleForOthers, consoleLooks, consoleOfAdmins } from './console.mjs';
import { consoleUpkeep } from './console_upkeep.mjs';
import { documents, documentsOnPhone } from './documents.mjs';
import { everyone } from './everyone.mjs';
import { flow } from './flow.mjs';
import { german } from './german.mjs';
import { kept } from './kept.mjs';
import { languages, looks, server } from './looks.mjs';
import { longChats, manyCalls, markdown } from './markdown.mjs';
import { races } from './races.mjs';
import { chromium, counted } from './support.mjs';

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  const parts = { desktop, phone, keyed, chats, chatsOnPhone, approvals, races, clauses, documents, documentsOnPhone, markdown, longChats, manyCalls, looks, kept, everyone, server, languages, german, flow, consoleOfAdmins, consoleUpkeep, consoleDoctor, consoleForOthers, consoleLooks };
  const only = process.argv.slice(2);
  for (const [name, part] of Object.entries(parts)) {
    if (only.length === 0 || only.includes(name)) await part(browser);
  }
} catch (error) {
  counted.failed += 1;
  console.log(`FAILED  ${error.message}`);
} finally {
  await browser.close();
}
console.log(`${counted.passed} passed, ${counted.failed} failed`);
process.exitCode = counted.failed > 0 ? 1 : 0;
