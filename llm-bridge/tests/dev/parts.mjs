// The chat page with a result of every kind from a real tool, which asks in the middle: asking.py starts the server.
//
//   TOOLRACK_URL   address of the server
//   CHROMIUM       the browser
//   SHOTS          folder for screenshots; none are taken without it

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const { TOOLRACK_URL, CHROMIUM, SHOTS } = process.env;
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `parts-${name}.png`), animations: 'disabled' });
}

function equal(found, wanted, what) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)} in place of ${JSON.stringify(wanted)}`);
}

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(40_000);
  await page.goto(TOOLRACK_URL);
  await page.fill('#question', 'Report.');
  await page.keyboard.press('Enter');
  const answer = page.locator('.answer');
  const parts = answer.locator('.call-parts');
  const choice = answer.locator('.ask-form button:text-is("Joint")');
  await choice.waitFor();
  // The first piece is there while the tool waits for the answer.
  equal([(await parts.locator('.text').first().innerText()).trim(), await parts.locator('table').count()], ['Reading the accounts.', 0], 'the first piece');
  await shot(page, 'asks');
  await choice.click();

  const picture = parts.locator('img');
  await picture.waitFor();
  equal(await picture.evaluate(async (image) => { await image.decode(); return image.naturalWidth; }), 64, 'picture');
  await page.waitForFunction(() => document.querySelector('.answer .call-parts audio')?.duration === 1);
  equal(await parts.locator('tbody td').allInnerTexts(), ['Joint', '40'], 'table');
  equal(await parts.locator('strong').innerText(), 'all', 'Markdown');
  const [download] = await Promise.all([page.waitForEvent('download'), parts.locator('.part-file', { hasText: 'report.csv' }).click()]);
  equal(readFileSync(await download.path(), 'utf8'), 'account,EUR\nJoint,40\n', 'file');
  await page.waitForSelector('.answer .call[data-name="report"][data-state="ok"]');
  await page.waitForSelector('.answer-body:has-text("The tool says: Reading the accounts.")');
  await answer.evaluate((node) => node.scrollIntoView());
  await shot(page, 'desktop');
  await page.setViewportSize({ width: 360, height: 740 });
  equal(await page.evaluate(() => document.documentElement.scrollWidth <= 360), true, 'the width of a phone');
  await shot(page, 'phone');
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
}
