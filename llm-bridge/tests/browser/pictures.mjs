// The pictures of the book; see pictures.py, which starts what they show. Names of pictures make only those.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { ask, chromium, idle, open } from './support.mjs';

const { TOOLRACK_URL, CHROMIUM, PICTURES, TRIP, MAIL, TERMINAL } = process.env;
const DESKTOP = { viewport: { width: 1180, height: 860 }, deviceScaleFactor: 1.5 };
const LOW = { width: 1180, height: 640 };
const PHONE = { viewport: { width: 390, height: 800 }, deviceScaleFactor: 1.5, hasTouch: true };

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'] });

/** Of a page, or of a part of one. */
async function picture(of, name) {
  // What moves has come to rest.
  await new Promise((rest) => setTimeout(rest, 400));
  await of.screenshot({ path: join(PICTURES, `${name}.png`), animations: 'disabled' });
  console.log(`${name}.png`);
}

/** Each picture has its own chat alone. */
async function forget() {
  const { chats } = await (await fetch(`${TOOLRACK_URL}/api/chats`)).json();
  for (const { id } of chats) await fetch(`${TOOLRACK_URL}/api/chats/${id}`, { method: 'DELETE' });
}

/** A session in a terminal. */
async function session(address, name) {
  if (!address) return;
  const context = await browser.newContext({ viewport: { width: 1010, height: 400 }, deviceScaleFactor: 1.5 });
  const page = await context.newPage();
  await page.goto(address);
  await picture(page.locator('pre'), name);
  await context.close();
}

/** A chat in which the trip was asked about. */
async function trip(options) {
  const { page, context } = await open(browser, options);
  await ask(page, TRIP);
  await page.waitForSelector('.answer:last-child table');
  await idle(page);
  return { page, context };
}

const pictures = {
  async page() {
    const { page, context } = await trip({ ...DESKTOP, colorScheme: 'light' });
    await page.locator('.call summary').first().click();
    await picture(page, 'page');
    await context.close();
  },
  async 'page-dark'() {
    const { page, context } = await trip({ ...DESKTOP, colorScheme: 'dark' });
    await picture(page, 'page-dark');
    await context.close();
  },
  async 'page-phone'() {
    const { page, context } = await trip({ ...PHONE, colorScheme: 'light' });
    await picture(page, 'page-phone');
    await context.close();
  },
  async approval() {
    const { page, context } = await open(browser, { ...DESKTOP, colorScheme: 'light' });
    await ask(page, MAIL);
    await page.waitForSelector('.answer:last-child .call-ask');
    await picture(page, 'approval');
    await page.click('.answer:last-child .allow');
    await idle(page);
    await context.close();
  },
  async 'approval-phone'() {
    const { page, context } = await open(browser, { ...PHONE, colorScheme: 'dark' });
    await ask(page, MAIL);
    await page.waitForSelector('.answer:last-child .call-ask');
    await picture(page, 'approval-phone');
    await page.click('.answer:last-child .allow');
    await idle(page);
    await context.close();
  },
  async console() {
    const context = await browser.newContext({ ...DESKTOP, viewport: LOW, locale: 'en-GB', colorScheme: 'light', serviceWorkers: 'block' });
    const page = await context.newPage();
    await page.goto(`${TOOLRACK_URL}/admin`);
    await page.waitForSelector('#fact-models .good');
    await picture(page, 'console');
    await page.click('#sections a[href="#audit"]');
    await page.waitForSelector('#section[data-section="audit"] .rows tbody tr');
    await picture(page, 'console-audit');
    await context.close();
  },
  async 'open-webui'() {
    const { OPEN_WEBUI_URL, OPEN_WEBUI_TOKEN } = process.env;
    if (!OPEN_WEBUI_URL) return;
    const context = await browser.newContext({ ...DESKTOP, viewport: LOW, locale: 'en-GB', colorScheme: 'light', serviceWorkers: 'block' });
    await context.addInitScript((token) => { localStorage.token = token; localStorage.theme = 'light'; }, OPEN_WEBUI_TOKEN);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(OPEN_WEBUI_URL);
    await page.waitForSelector('#chat-input');
    // What is new there is told first.
    await page.keyboard.press('Escape');
    await page.click('#chat-input');
    await page.keyboard.type(TRIP);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#messages-container table, .chat-assistant table');
    await picture(page, 'open-webui');
    await context.close();
  },
  terminal: () => session(TERMINAL, 'terminal'),
  claude: () => session(process.env.AGENT_claude, 'claude-code'),
  codex: () => session(process.env.AGENT_codex, 'codex'),
  opencode: () => session(process.env.AGENT_opencode, 'opencode'),
};

mkdirSync(PICTURES, { recursive: true });
try {
  const only = process.argv.slice(2);
  for (const [name, take] of Object.entries(pictures)) {
    if (only.length > 0 && !only.includes(name)) continue;
    await take();
    await forget();
  }
} finally {
  await browser.close();
}
