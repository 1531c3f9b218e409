"""How the page looks: on a wide screen, on a phone, in the dark, and on paper.

Text is HTML everywhere, also beside bars, so that it never shrinks with a picture. Colours are told apart by
people who see few of them: stranded is orange and the darker the more, usable is blue, used is grey, and
what is out of service is hatched, or dashed where a number stands in it. Nothing is told by colour alone.
"""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1d2329;--soft:#535e68;--line:#d5dbe0;--paper:#fff;
--used:#9aa7b3;--usable:#1b7fb5;--stranded:#d95f0e;--s3:#8c2d04;--s2:#d95f0e;--s1:#fdae6b;--onto:#fff;--onto1:#000}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#a3adb6;--line:#39424a;--paper:#14181b;
--used:#5f6b76;--usable:#4aa8da;--stranded:#f0853a;--s3:#ffcf9e;--s2:#f0853a;--s1:#a8501a;--onto:#000;--onto1:#fff}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;
max-width:64rem;padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .25rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
h3{font-size:1rem;margin:1rem 0 .25rem}p{margin:.5rem 0}.soft{color:var(--soft);font-size:14px}
.lead{font-size:1.2rem}.advice{border-left:4px solid var(--usable);padding-left:.75rem}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .5rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th:first-child,td:first-child,.name,.words{text-align:left}th{font-weight:600}th,td.figure{overflow-wrap:normal}
td:first-child{min-width:9rem}td.name{min-width:6rem}td.words{min-width:12rem}
figure{margin:.5rem 0}.bars{display:grid;grid-template-columns:minmax(6rem,14rem) 1fr minmax(5rem,auto);
gap:.2rem .75rem;align-items:center;font-size:13px;line-height:1.3}
.bars>:nth-child(3n+1){text-align:right}.bar{display:flex;height:16px;min-width:2rem}.bar i{height:100%}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;font-size:13px;margin:.5rem 0}
.legend i{display:inline-block;width:12px;height:12px;margin-right:.4rem;vertical-align:-1px}
.cells{display:flex;flex-wrap:wrap;gap:2px;margin:.1rem 0 .6rem}
.cells i{width:24px;height:20px;font:11px/20px system-ui,sans-serif;text-align:center;color:#000}
.cells .s3,.cells .idle{color:var(--onto)}.cells .s1,.cells .full{color:var(--onto1)}
.cells .closed{background:var(--paper);color:var(--soft);outline-style:dashed}
.cells .waits{outline:1px solid var(--ink);outline-offset:-1px;color:var(--ink)}
.many .cells i{width:9px;height:9px}
.names ul{columns:8rem;gap:1rem;margin:.3rem 0;padding:0;list-style:none;font-size:12px}
.kind{font-size:14px;margin:.4rem 0 0}
.used,.full{background:var(--used)}.usable,.idle{background:var(--usable)}.stranded{background:var(--stranded)}
.s3{background:var(--s3)}.s2{background:var(--s2)}.s1{background:var(--s1)}
.closed{background:repeating-linear-gradient(45deg,var(--soft) 0 2px,var(--paper) 2px 5px);outline:1px solid var(--soft);
outline-offset:-1px}
details{font-size:14px}summary{cursor:pointer}.group th{text-align:left;padding-top:.6rem}
@media screen and (max-width:40rem){body{margin:1rem auto}.bars{grid-template-columns:minmax(5rem,7.5rem) 1fr 5rem}
table,tbody,tr,td{display:block}thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{padding:.4rem 0;border-bottom:1px solid var(--line)}td,td:first-child{border:0;padding:.05rem 0;text-align:right}
.group th{display:block;border:0;padding:.2rem 0 0;color:var(--soft)}td:first-child{text-align:left;font-weight:600}td:first-child,td.name,td.words{min-width:0}td[data-label]::before{content:attr(data-label);float:left;
padding-right:1rem;color:var(--soft)}td.name,td.words{text-align:left}td.name[data-label]::before,td.words[data-label]::before{float:none;display:block}}
@page{margin:12mm}
@media print{:root{color-scheme:light;--ink:#000;--soft:#444;--line:#bbb;--paper:#fff;
--used:#9aa7b3;--usable:#1b7fb5;--stranded:#d95f0e;--s3:#8c2d04;--s2:#d95f0e;--s1:#fdae6b;--onto:#fff;--onto1:#000}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
body{max-width:none;margin:0;padding:0;font-size:13px}.soft,table,details{font-size:12px}
h1{font-size:1.3rem}h2{margin-top:1.1rem}h3{margin-top:.6rem}p{margin:.3rem 0}.lead{font-size:1.1rem}
.cells{margin-bottom:.3rem}.cells i{height:16px;line-height:16px}
.bars{font-size:12px;gap:.1rem .75rem;line-height:1.2}.bar{height:11px}th,td{padding:.15rem .5rem}h2,h3,.kind{break-after:avoid}
figure.short,tr,table.short,.bars>*,.cells i,.names li,.legend,.advice{break-inside:avoid}.group{break-after:avoid}.legend{break-after:avoid}p{orphans:3;widows:3}
thead{display:table-header-group}.many details{display:none}summary{display:none}
.names ul{font-size:11px}details::details-content{content-visibility:visible;display:block;height:auto}}
"""
