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
//   SLOW           so many times slower is the processor of each page, and that much later come answers; LATE by so many milliseconds comes
//                  each step of the tests. What fails then has not waited for what it looks at, or loses what comes at the wrong time
//
// playwright-core comes from `npm install` here, from NODE_PATH, or from the
// node_modules of the working directory.

import { approvals } from './approvals.mjs';
import { desktop, keyed, phone } from './chat.mjs';
import { chats, chatsOnPhone } from './chats.mjs';
import { clauses } from './clauses.mjs';
import { consoleDoctor, consoleForOthers, consoleLooks, consoleOfAdmins } from './console.mjs';
import { consoleCommands } from './console_commands.mjs';
import { consoleKept } from './console_kept.mjs';
import { consoleMany } from './console_many.mjs';
import { consoleUpkeep } from './console_upkeep.mjs';
import { devices } from './devices.mjs';
import { documents, documentsOnPhone } from './documents.mjs';
import { everyone } from './everyone.mjs';
import { flow } from './flow.mjs';
import { german } from './german.mjs';
import { attacked } from './hostile.mjs';
import { kept } from './kept.mjs';
import { languages, looks, server } from './looks.mjs';
import { longChats, manyCalls, markdown } from './markdown.mjs';
import { races } from './races.mjs';
import { reach } from './reach.mjs';
import { chromium, counted } from './support.mjs';

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  slowMo: Number(process.env.LATE ?? 0),
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const slow = Number(process.env.SLOW ?? 1);
if (slow > 1) {
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.on('page', async (page) => {
      const session = await context.newCDPSession(page);
      await session.send('Emulation.setCPUThrottlingRate', { rate: slow });
      await session.send('Network.emulateNetworkConditions', { offline: false, latency: 20 * slow, downloadThroughput: -1, uploadThroughput: -1 });
    });
    return context;
  };
}
try {
  const parts = { desktop, phone, keyed, chats, chatsOnPhone, devices, approvals, races, clauses, documents, documentsOnPhone, markdown, longChats, manyCalls, looks, kept, everyone, reach, attacked, server, languages, german, flow, consoleOfAdmins, consoleUpkeep, consoleCommands, consoleKept, consoleMany, consoleDoctor, consoleForOthers, consoleLooks };
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
