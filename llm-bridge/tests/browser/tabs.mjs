// Fifty tabs on one server: chats whose answers stream, and consoles that look on. Each gets what is its own, and when they are closed
// the server has its descriptors and its memory back.
//
//   TOOLRACK_URL, TOOLRACK_PID   the server, whose model says the question's number with each word
//   KEYS                         those of an admin, and of users of which none has too many chats
//   TABS, ROUNDS, WORDS          how many tabs; how often, default 3; how many words an answer has

import { readFileSync, readdirSync } from 'node:fs';

import { URL_UNDER_TEST, check, chromium, counted } from './support.mjs';

const PID = process.env.TOOLRACK_PID;
const [ADMIN, ...USERS] = process.env.KEYS.split(',');
const TABS = Number(process.env.TABS);
const ROUNDS = Number(process.env.ROUNDS ?? 3);
const WORDS = Number(process.env.WORDS);
/** Two cores draw fifty pages. */
const WAIT = 240_000;

const memory = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${PID}/status`, 'utf8'))[1]) / 1024;
const descriptors = () => readdirSync(`/proc/${PID}/fd`).length;
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Waits until the server has no more descriptors open than that. */
async function closed(most) {
  for (const end = Date.now() + 120_000; descriptors() > most && Date.now() < end;) await pause(500);
  return descriptors();
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--renderer-process-limit=6', '--disable-background-networking', '--disable-background-timer-throttling', '--disable-renderer-backgrounding'],
});

/** A tab of a person of its own: a browser opens six connections to a server. */
async function tab(address, key) {
  const context = await browser.newContext({ locale: 'en-GB', serviceWorkers: 'block', viewport: { width: 800, height: 600 } });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  await page.goto(`${URL_UNDER_TEST}${address}`);
  await page.fill('#key', key);
  await page.press('#key', 'Enter');
  return { page, context, faults };
}

async function several(count, make) {
  const all = [];
  // A few at a time.
  for (let at = 0; at < count; at += 5) all.push(...(await Promise.all(Array.from({ length: Math.min(5, count - at) }, (_, number) => make(at + number)))));
  return all;
}

async function round(number) {
  const half = Math.floor(TABS / 2);
  const chats = await several(half, (at) => tab('', USERS[at % USERS.length]));
  const consoles = await several(TABS - half, () => tab('admin#turns', ADMIN));
  await Promise.all(consoles.map(({ page }) => page.waitForSelector('#section[data-section="turns"]')));
  const began = Date.now();
  await Promise.all(chats.map(async ({ page }, at) => {
    await page.fill('#question', `number ${number}-${at}.`);
    await page.press('#question', 'Enter');
  }));
  await Promise.all(consoles.map(({ page }) => page.waitForSelector('.rows tbody tr')));
  const most = { descriptors: descriptors(), memory: memory() };
  await Promise.all(chats.map(({ page }, at) => page.waitForFunction(
    ([word]) => [...document.querySelectorAll('.answer .text')].some((text) => text.textContent.includes(word)),
    [`${number}-${at}:${WORDS}.`],
  )));
  const took = (Date.now() - began) / 1000;
  const texts = await Promise.all(chats.map(({ page }) => page.locator('.answer .text').first().innerText()));
  const wrong = texts.filter((text, at) => text.trim().split(/\s+/).join(' ') !== Array.from({ length: WORDS }, (_, word) => `${number}-${at}:${word + 1}.`).join(' '));
  await Promise.all(consoles.map(({ page }) => page.waitForSelector('#section .empty')));
  const faults = [...chats, ...consoles].flatMap((one) => one.faults);
  await Promise.all([...chats, ...consoles].map(({ context }) => context.close()));
  return { most, took, wrong, faults };
}

try {
  // What is opened once stays open.
  const first = await tab('admin', ADMIN);
  await first.page.waitForSelector('#section h1');
  await first.context.close();
  await pause(1000);
  const before = { descriptors: descriptors(), memory: memory() };
  console.log(`        before: ${before.descriptors} descriptors, ${before.memory.toFixed(0)} MiB`);
  let settled = 0;
  for (let number = 1; number <= ROUNDS; number += 1) {
    await check(`b17 ${TABS} tabs, round ${number}: each chat has its answer whole and each console has seen the turns`, async () => {
      const { most, took, wrong, faults } = await round(number);
      const left = await closed(before.descriptors + 4);
      console.log(`        ${took.toFixed(1)} s, at most ${most.descriptors} descriptors and ${most.memory.toFixed(0)} MiB; after: ${left} and ${memory().toFixed(0)} MiB`);
      if (wrong.length > 0) throw new Error(`${wrong.length} answers are wrong: ${wrong[0]}`);
      if (faults.length > 0) throw new Error(faults.join(', '));
      if (left > before.descriptors + 4) throw new Error(`${left} descriptors are left of ${before.descriptors}`);
    });
    if (number === 1) settled = memory();
  }
  await check('b17 what later rounds took of the memory is given back', async () => {
    if (memory() > settled + 24) throw new Error(`${memory().toFixed(0)} MiB after ${settled.toFixed(0)} MiB`);
  });
} catch (error) {
  counted.failed += 1;
  console.log(`FAILED  ${error.message}`);
} finally {
  await browser.close();
}
console.log(`${counted.passed} passed, ${counted.failed} failed`);
process.exitCode = counted.failed > 0 ? 1 : 0;
