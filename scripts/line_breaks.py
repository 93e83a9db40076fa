"""For the documentation's build: where lines break.

Code in a line of text breaks at its spaces and not behind a hyphen, as in "--" and "samples", and no arrow "->" breaks;
a path that fills a table's cell breaks behind its slashes.
"""

import re

_LONGEST = 40  # characters of a word that is kept whole: a telephone's line


def kept_whole(code: str) -> str:
    """Words with a hyphen in a span that stylesheets/width.css does not break."""
    return re.sub(rf"(?<!\S)(?=\S*-)\S{{2,{_LONGEST}}}(?!\S)", r'<span class="whole">\g<0></span>', code)


def on_page_content(html: str, **kwargs) -> str:
    """Blocks of code begin with an empty span and stay as they are."""
    html = re.sub(r"(?<!<span></span>)<code>([^<]+)</code>", lambda m: f"<code>{kept_whole(m[1])}</code>", html)
    html = re.sub(r"(?<= )-&gt;(?= )", '<span class="whole">-&gt;</span>', html)
    return re.sub(r"(?<=<td>)[\w.-]+/[\w./-]+(?=</td>)", lambda m: m[0].replace("/", "/<wbr>"), html)
