// What a rule lets through, in a sentence.

import { t } from '../state/language.js';

/** @import { RuleScope } from '../state/types.d.ts' */

/**
 * In a sentence, what calls of a tool a rule lets through.
 * @param {RuleScope} scope
 * @param {string} tool
 */
export function allowedBy(scope, tool) {
  if (scope.scope === 'chat') return t.allowsInChat(tool);
  if (scope.scope === 'arguments') return t.allowsArguments(tool);
  const { folder, argument, others } = scope;
  return Object.keys(others).length > 0 ? t.allowsInFolderWith(tool, argument, folder) : t.allowsInFolder(tool, argument, folder);
}
