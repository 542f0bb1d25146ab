/** The look of the approval pages: one small sheet, allowed by its hash, so that no other style can run on them. */
import { createHash } from "node:crypto";

export const STYLE = `
:root{color-scheme:light dark;--bg:#f5f5f2;--card:#fff;--ink:#1c1d1f;--soft:#5c6066;--line:#dcdcd6;--code:#f7f7f4;
--go:#1f6f4a;--go-ink:#fff;--stop:#fff;--stop-ink:#9c2f24;--stop-line:#d9a8a2;--focus:#2456c9;--high:#9c2f24;--medium:#8a5a00;--low:#1f6f4a;--note:#6b4f9c}
@media (prefers-color-scheme:dark){:root{--bg:#141517;--card:#1d1f22;--ink:#ececea;--soft:#a5a9b0;--line:#34373c;--code:#16181a;
--go:#3f9d71;--go-ink:#08130d;--stop:#1d1f22;--stop-ink:#f0a198;--stop-line:#7d453f;--focus:#8db0ff;--high:#f0a198;--medium:#e3b765;--low:#7ccba3;--note:#c4afec}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","PingFang SC","Microsoft YaHei",sans-serif}
main{max-width:46rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
.brand{color:var(--soft);font-size:.85rem;letter-spacing:.04em;margin:0 0 .75rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .35rem;font-weight:650}
.lead{color:var(--soft);margin:0 0 1.5rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.25rem 1.25rem 1.35rem;margin:0 0 1.25rem}
h2{font-size:1rem;margin:0 0 .35rem}
.call{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:baseline;margin:0 0 .75rem}
.tool{font:600 1.1rem/1.3 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.version{color:var(--soft);font-size:.9rem}
.risk{margin-left:auto;border:1px solid currentColor;border-radius:999px;padding:.05rem .7rem;font-size:.85rem;font-weight:600;white-space:nowrap}
.high{color:var(--high)}.medium{color:var(--medium)}.low{color:var(--low)}
dl{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.4rem 1.25rem;margin:0}
dt{color:var(--soft);font-size:.9rem}
dd{margin:0;overflow-wrap:anywhere;white-space:pre-wrap;min-width:0}
.note{color:var(--soft);font-size:.88rem;margin:.15rem 0 .75rem}
pre{margin:0;background:var(--code);border:1px solid var(--line);border-radius:8px;padding:.85rem 1rem;white-space:pre-wrap;overflow-wrap:anywhere;overflow:hidden;
font:.9rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.88em}
.cut{color:var(--note);font-style:italic;font-family:system-ui,sans-serif;font-size:.85rem}
details{margin:.35rem 0;white-space:normal}
details pre{margin-top:.35rem}
dd details{margin:0}
summary{cursor:pointer;color:var(--focus);font-family:system-ui,sans-serif;font-size:.9rem}
label{display:block;font-weight:600;margin:0 0 .25rem}
textarea{width:100%;min-height:4.5rem;padding:.6rem .75rem;border:1px solid var(--line);border-radius:8px;background:var(--code);color:inherit;font:inherit;resize:vertical}
.buttons{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1rem}
button{flex:1 1 9rem;min-height:2.9rem;border-radius:8px;border:1px solid transparent;font:inherit;font-weight:600;cursor:pointer;padding:.5rem 1rem}
.said{white-space:pre-wrap}
.warn{color:var(--medium);font-weight:600;margin:1rem 0 0}
.buttons+.note{margin:.85rem 0 0}
.approve{background:var(--go);color:var(--go-ink)}
.deny{background:var(--stop);color:var(--stop-ink);border-color:var(--stop-line)}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
@media (max-width:34rem){main{padding-top:1.5rem}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.6rem}.risk{margin-left:0}}
`;

export const STYLE_SOURCE = `'sha256-${createHash("sha256").update(STYLE, "utf8").digest("base64")}'`;
