// Light, dark, or as the system has it.

import { signal } from '../vendor/signals.js';
import { prefer, preference } from './storage.js';

export const theme = signal(preference('theme', 'system'));

/** @param {string} chosen */
export function setTheme(chosen) {
  theme.value = chosen;
  prefer('theme', chosen === 'system' ? null : chosen);
  show();
}

function show() {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

show();
