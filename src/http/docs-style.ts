/** The look of the API page: one column of operations beside their list, light or dark as the reader's system is. */
export const STYLE = `
:root {
  --ground: #fbfaf8; --panel: #ffffff; --ink: #1f2328; --soft: #5d6570; --line: #e4e1db; --code: #f3f1ec; --accent: #2f6f5e;
  --get: #1f6fb2; --post: #2f6f5e; --patch: #9a6700; --delete: #b3372f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #15181b; --panel: #1b1f23; --ink: #e3e6e8; --soft: #9aa3ab; --line: #2d3338; --code: #22272c; --accent: #7cc4ae;
    --get: #6db3ee; --post: #7cc4ae; --patch: #dfb35a; --delete: #f08a80;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1.5rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; display: grid; grid-template-columns: 15rem minmax(0, 1fr); background: var(--ground); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 2rem 1rem 2rem 1.5rem; border-right: 1px solid var(--line); font-size: .9rem; }
nav .brand { font-size: 1.25rem; font-weight: 650; color: var(--ink); letter-spacing: -.01em; }
nav h2 { margin: 1.6rem 0 .3rem; font-size: .75rem; font-weight: 600; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); border: 0; padding: 0; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: block; padding: .18rem 0; color: var(--ink); overflow-wrap: anywhere; }
nav li a:hover { color: var(--accent); }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
main { padding: 2.5rem clamp(1rem, 4vw, 4rem) 6rem; max-width: 62rem; width: 100%; }
h1 { margin: 0 0 .5rem; font-size: 2rem; letter-spacing: -.02em; line-height: 1.2; }
header p { color: var(--soft); max-width: 44rem; margin-top: 0; }
main h2 { margin: 3rem 0 1rem; font-size: 1.3rem; padding-bottom: .4rem; border-bottom: 1px solid var(--line); }
article { margin: 1.25rem 0 1.75rem; padding: 1.25rem 1.5rem 1.5rem; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; }
article h3 { margin: 0 0 .4rem; font-size: 1.05rem; display: flex; gap: .7rem; align-items: center; flex-wrap: wrap; }
article h3 code { background: none; padding: 0; font-size: 1em; overflow-wrap: anywhere; }
article p { margin: .3rem 0; }
h4 { margin: 1.3rem 0 .4rem; font-size: .8rem; text-transform: uppercase; letter-spacing: .05em; color: var(--soft); }
.method { font: 600 .75rem/1 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; padding: .35rem .5rem; border-radius: 5px; border: 1px solid currentColor; }
.get { color: var(--get); } .post { color: var(--post); } .patch { color: var(--patch); } .delete { color: var(--delete); }
.facts { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; color: var(--soft); font-size: .85rem; }
.table { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .9rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .8rem; }
th, td { padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
td:first-child { white-space: nowrap; }
.required { margin-left: .5rem; color: var(--delete); font-size: .75rem; }
small { color: var(--soft); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .875em; }
code { background: var(--code); padding: .1em .35em; border-radius: 4px; }
pre { margin: 0; padding: .9rem 1rem; background: var(--code); border-radius: 7px; overflow-x: auto; line-height: 1.5; }
pre code { background: none; padding: 0; }
@media (max-width: 50rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: 1rem; }
  nav ul { display: flex; flex-wrap: wrap; gap: 0 1rem; }
  nav h2 { margin-top: .8rem; }
  main { padding-top: 1.5rem; }
  article { padding: 1rem 1rem 1.25rem; }
  thead { display: none; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; }
  td { display: inline; border: 0; padding: 0 .6rem 0 0; }
  td:last-child { display: block; padding-top: .15rem; }
}
`;
