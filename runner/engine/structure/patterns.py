# ruff: noqa: RUF001  # dashes and signs as people type them
"""What texts in spreadsheets look like: numbers, dates, stand-ins for nothing, totals, notes, titles."""

import re

NUMBER = re.compile(
    r"[<>~≈±]?\s*[(+\-−–]?\s*(?:[$€£¥₹]|us\$|eur|usd|gbp|rs\.?)?\s*[(+\-−]?\s*"
    r"(?:\d[\d,. '\u00a0\u202f]*|\.\d+)(?:e[+\-]?\d+)?\s*\)?\s*"
    r"(?:%|[$€£¥]|\*{1,3}|±\s*[\d.,]+|[a-z]|\s?\(?[a-z0-9]\)|[¹²³†‡]+|\\\d|/\d)?\s*\)?",
    re.IGNORECASE,
)
FILLER = re.compile(
    r"[-–—.…*#?xX:/~]{1,3}|[(\[]?n\.?\s?/?\s?[ads]\.?[)\]]?|"
    r"[(\[]?(?:[xzsdbcy]|null|none|nan|nil|na|nsa|nc|np)[)\]]|null|none|nan|nil|#n/a|tbd|tba|"
    r"unknown|not available|not applicable|missing",
    re.IGNORECASE,
)
YEAR = re.compile(
    r"(?:fy|cy|year|q[1-4])?\s?'?(?:1[6-9]|20)\d\d(?:\.0)?(?:\s?[-/–]\s?(?:(?:1[6-9]|20)\d\d|\d\d))?"
    r"\s?(?:\(?[a-z0-9]\)?|\*|\\\d|/\d|q[1-4])?",
    re.IGNORECASE,
)
DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ t]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\s?(?:[ap]m)?z?)?|"
    r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\s?(?:[ap]m)?|"
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)?(?:day)?,?\s?"
    r"\d{1,2}(?:st|nd|rd|th)?[-/ ](?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,?[-/ ]\d{2,4}|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}",
    re.IGNORECASE,
)
PERIOD = re.compile(
    r"(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)|january|february|march|april|june|"
    r"july|august|"
    r"september|october|november|december|mon|tues?|wed|thur?s?|fri|sat|sun|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|q[1-4]|[1-4](?:st|nd|rd|th)? (?:quarter|qtr)|"
    r"quarter [1-4]|h[12]|week \d+|ytd|ytg)"
    r"\.?(?:[-/ ',]{0,2}(?:\d\d|\d{4}))?",
    re.IGNORECASE,
)
TOTAL = re.compile(
    r"\b(?:sub-?\s?totals?|grand totals?|totals?|sum|sums|average|averages|avg|mean|median|overall|"
    r"net change|"
    r"gesamt|summe|insgesamt|celkem|totaux|totale|moyenne|"
    r"all (?:persons|ages|races|items|industries|regions|states))\b|^(?:all|united states|net|balance)\b",
    re.IGNORECASE,
)
NOTE = re.compile(
    r"[*†‡]*\s*(?:notes?|sources?|n\.?b\.?|remarks?|comments?|legend|key|symbols?|footnotes?|see|contact|"
    r"inquir\w+|for (?:more|further|additional|definitions?|details)|http|www\.|copyright|©|"
    r"last (?:modified|updated?)|updated|published|prepared|includes?|excludes?|data (?:are|is|from|in)|"
    r"the (?:data|figures|following|number|percent)|these|this|standard errors?|abbreviations?|"
    r"suggested citation|released?|"
    r"disclaimer|quelle|anmerkung|pozn|return to|back to|go to|internet|director in charge|print|page \d)",
    re.IGNORECASE,
)
TITLE = re.compile(
    r"(?:table|tab\.|figure|fig\.|chart|annex|appendix|exhibit|schedule|sheet|section|part|report|"
    r"statistics)\s*"
    r"[\dA-Z]*[\d.:\-]",
    re.IGNORECASE,
)
FOOTNOTE = re.compile(r"(?:\(?[\da-z]{1,2}[).\]/]|\[[\da-z]{1,2}\]|\\?\d{1,2}|[*†‡#]+|\\\d+)\s*[\\]?\s*[A-Za-z]{2}")
UNIT = re.compile(
    r"[(\[].*[)\]]|%|[$€£]\s?(?:m|bn|k|000s?|million|billion|thousands?)?|.{0,12}(?:percent|pct)\.?",
    re.IGNORECASE,
)
RULE = re.compile(r"[-=_~*.\s|+]{4,}")
CODE = re.compile(r"[A-Za-z]+(?:_[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]+\d+[A-Za-z\d]*")

# Words that people head columns with. A short text with one of them and without a digit reads like a column's name.
NAME = re.compile(
    r"\b(?:"
    r"names?|surname|title|id|ids|code|codes|key|number|no|nr|num|ref|reference|index|rank|type|kind|"
    r"class|category|group|description|desc|details|comments?|notes|remarks?|status|state|city|town|"
    r"county|country|region|district|area|location|address|street|zip|postcode|post code|postal code|"
    r"phone|telephone|tel|fax|mobile|e-?mail|url|website|date|day|week|month|quarter|year|years|period|"
    r"time|hour|hours|start|end|begin|from|to|until|duration|age|sex|gender|amount|amt|price|cost|costs|"
    r"fee|rate|value|values|balance|budget|salary|pay|tax|revenue|sales|currency|unit|units|uom|qty|"
    r"quantity|count|frequency|size|length|width|height|weight|volume|capacity|percent|percentage|pct|"
    r"share|ratio|score|change|difference|total|mean|average|median|min|max|customer|client|supplier|"
    r"vendor|company|firm|employer|employee|member|person|contact|owner|manager|department|dept|office|"
    r"position|role|job|occupation|product|item|material|brand|model|project|program|programme|account|"
    r"order|invoice|source|latitude|longitude|lat|lon|lng|nom|prénom|ville|pays|montant|prix|datum|anzahl|"
    r"betrag|ort|land|preis|menge|bezeichnung|fecha|nombre|importe|cantidad|precio"
    r")\b|[#%]",
    re.IGNORECASE,
)
