// The main views beside pictures that are kept, so that they stay as they were made: `looks/` has them, and `run.py --new-looks` makes
// them anew. What the server says is the same each time.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';

import { ANSWERS, ASKING, NOW, running } from './kept_data.mjs';
import { FROM_THE_RIGHT, hebrew } from './right.mjs';
import { URL_UNDER_TEST, WAIT, check } from './support.mjs';

const KEPT = process.env.LOOKS ?? '';
const ANEW = process.env.NEW_LOOKS === '1';
/** Words, where only pictures are made anew that have one in their names. */
const OF = (process.env.LOOKS_OF ?? '').split(' ').filter(Boolean);
/** Where a view is put that is not as it was. */
const SEEN = process.env.SHOTS ?? join(tmpdir(), 'toolrack-looks');
/** Of a thousand pixels so many may be others; with another version of the browser, which draws letters and edges otherwise, so many. */
const MOST = { same: 0.5, other: 20 };
/** Heads of tables that stay in sight are painted in a layer of their own, which is a pixel higher or lower each time. */
const STILL = '.rows th { position: static !important; }';
/** The version that has made the pictures. */
const VERSION = 'browser.txt';

const WINDOWS = [[390, 844], [768, 1024], [1280, 800], [2560, 1440], [3840, 2160]];
/** The views and sections that are kept at the widths between and beyond phone and desktop. */
const MAIN = ['chat', 'approval', 'inbox', 'tools', 'overview'];
/** Those that are kept in 4K. */
const LARGE = ['chat', 'overview'];
/** Those that are kept in German. */
const GERMAN = ['chat', 'approval', 'settings'];

/** What is there once the server has said all that the head of the page and the list of chats tell. */
const HEAD = ['#model', '#who', '#tools-count', '#inbox-open', '.chat-row'];

const CHAT = {
  chat: async () => {},
  approval: async (page) => {
    await page.click('.call .remember > summary');
    await page.waitForSelector('.call .remember-folder');
  },
  inbox: async (page) => {
    await page.click('#inbox-open');
    await page.click('#inbox .remember > summary');
    await page.waitForSelector('#inbox .remember-folder');
  },
  settings: async (page) => {
    await page.click('#settings-open');
    await page.waitForSelector('#settings .rule');
    await page.waitForSelector('#settings label:has-text("Persona")');
  },
  tools: async (page) => {
    await page.click('#tools-toggle');
    await page.waitForSelector('#tools-list .tool');
  },
};
/** Sections of the console; the others only where the window is wide. */
const CONSOLE = ['overview', 'tools', 'people', 'audit'];
const WIDE = ['models', 'personas', 'turns', 'approvals', 'traces?id=call-3', 'servers', 'documents', 'schedule', 'webhooks', 'settings'];

/** Opens a view before a server that says what is written down; an answer may be a function of its route. The time stands still at `now`. */
export async function openKept(browser, address, options, before = async () => {}, answers = ANSWERS, now = NOW) {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', serviceWorkers: 'block', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  await before(page);
  if (now) await page.clock.setFixedTime(now);
  await page.route(/\/(api|v1|healthz|readyz)(\/|\?|$)/, (route) => {
    const answer = answers[new URL(route.request().url()).pathname];
    if (typeof answer === 'function') return answer(route);
    return answer ? route.fulfill({ json: answer }) : route.fulfill({ status: 404, json: { error: { message: 'nothing is kept here', type: 'not_found' } } });
  });
  await page.goto(URL_UNDER_TEST + address);
  return { page, context };
}

async function compare(page, name, most) {
  // Nothing lies under the pointer.
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.fonts.ready.then(() => true));
  const seen = await page.screenshot({ animations: 'disabled', caret: 'hide', scale: 'css', style: STILL });
  const file = join(KEPT, `${name}.png`);
  if (ANEW) {
    mkdirSync(KEPT, { recursive: true });
    writeFileSync(file, seen);
    return;
  }
  const [before, now] = [readFileSync(file), seen].map((bytes) => PNG.sync.read(bytes));
  const { width, height } = before;
  if (now.width !== width || now.height !== height) throw new Error(`${now.width} × ${now.height} pixels, expected ${width} × ${height}`);
  const difference = new PNG({ width, height });
  const others = pixelmatch(before.data, now.data, difference.data, width, height, { threshold: 0.15 });
  if (others * 1000 <= width * height * most) return;
  mkdirSync(SEEN, { recursive: true });
  writeFileSync(join(SEEN, `${name}-now.png`), seen);
  writeFileSync(join(SEEN, `${name}-difference.png`), PNG.sync.write(difference));
  throw new Error(`${others} pixels are others: see ${join(SEEN, name)}-now.png and -difference.png; if it is meant, \`run.py --new-looks\` keeps it`);
}

const open = (browser, address, colorScheme, [width, height], answers = ANSWERS, locale = 'en-GB', before = undefined) =>
  openKept(browser, address, { reducedMotion: 'reduce', colorScheme, viewport: { width, height }, hasTouch: width < 700, locale }, before, answers);

export async function kept(browser) {
  if (!KEPT) return;
  const version = join(KEPT, VERSION);
  if (ANEW) {
    mkdirSync(KEPT, { recursive: true });
    writeFileSync(version, `${browser.version()}\n`);
  }
  const most = readFileSync(version, 'utf8').trim() === browser.version() ? MOST.same : MOST.other;
  const view = (name, address, colorScheme, size, prepare, ...more) => (OF.length > 0 && !OF.some((word) => name.includes(word)) ? undefined : check(`b17 ${name} looks as it was made`, async () => {
    const { page, context } = await open(browser, address, colorScheme, size, ...more);
    await prepare(page);
    await compare(page, name, most);
    await context.close();
  }));
  const chat = (name, shown, colorScheme, size, ...more) => {
    const waits = shown === 'approval';
    return view(name, '#chat_1', colorScheme, size, async (page) => {
      for (const part of [...HEAD, waits ? '.call .allow' : '.answer .hljs-built_in']) await page.waitForSelector(part, { state: 'attached' });
      await CHAT[shown](page);
    }, waits ? running([ASKING], { '/api/approvals': ANSWERS['/api/approvals'] }) : ANSWERS, ...more);
  };
  const section = (name, address, colorScheme, size, ...more) => view(name, `admin#${address}`, colorScheme, size, async (page) => {
    await page.waitForSelector('#section:not([aria-busy]) h1');
    await page.waitForLoadState('networkidle');
  }, ...more);
  for (const colorScheme of ['light', 'dark']) {
    for (const size of WINDOWS) {
      const [width] = size;
      const main = width > 3000 ? LARGE : MAIN;
      const isMain = [390, 1280].includes(width);
      const name = (what) => `${what}-${width}-${colorScheme}`;
      for (const shown of Object.keys(CHAT).filter((one) => isMain || main.includes(one))) await chat(name(shown), shown, colorScheme, size);
      const sections = width === 1280 ? [...CONSOLE, ...WIDE] : CONSOLE.filter((one) => isMain || main.includes(one));
      for (const address of sections) await section(name(`console-${address.split('?')[0]}`), address, colorScheme, size);
    }
  }
  for (const size of [WINDOWS[0], WINDOWS[2]]) {
    for (const shown of GERMAN) await chat(`${shown}-german-${size[0]}`, shown, 'light', size, 'de-AT');
    await section(`console-people-german-${size[0]}`, 'people', 'light', size, ANSWERS, 'de-AT');
    await view(`chat-from-the-right-${size[0]}`, '#chat_1', 'light', size, (page) => page.waitForSelector('.answer .hljs-built_in'), FROM_THE_RIGHT, 'he-IL', hebrew);
  }
}
