// What the page uses of it.
export interface Token {
  type: string;
  level: number;
  nesting: number;
  map: [number, number] | null;
  children: Token[] | null;
  content: string;
  meta: any;
  attrs: [string, string][] | null;
  block: boolean;
  attrJoin(name: string, value: string): void;
}
type Rule = (tokens: Token[], index: number) => string;
interface State { src: string; tokens: Token[]; Token: new (type: string, tag: string, nesting: number) => Token; push(type: string, tag: string, nesting: number): Token }
export interface InlineState extends State { pos: number }
export interface BlockState extends State { bMarks: number[]; eMarks: number[]; tShift: number[]; sCount: number[]; blkIndent: number; line: number }
export interface MarkdownIt {
  linkify: { set(options: object): void };
  use(plugin: (parser: MarkdownIt) => void): MarkdownIt;
  render(text: string, env: object): string;
  parse(text: string, env: object): Token[];
  options: object;
  utils: { escapeHtml(text: string): string };
  renderer: { rules: Record<string, Rule | undefined>; render(tokens: Token[], options: object, env: object): string };
  core: { ruler: { after(name: string, own: string, rule: (state: State) => void): void } };
  inline: { ruler: { before(name: string, own: string, rule: (state: InlineState, silent: boolean) => boolean): void } };
  block: { ruler: { before(name: string, own: string, rule: (state: BlockState, from: number, to: number, silent: boolean) => boolean, options: object): void } };
}
