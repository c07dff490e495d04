# ruff: noqa: RUF001  # words as people type them
"""The names of months, weekdays and eras, as people write them in many languages."""

import re
import unicodedata
from datetime import date
from typing import Final

# One line per language: full names as calendars print them. Genitives and other forms follow.
_FULL: Final = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar marz april mai juni juli august september oktober november dezember",
    "fr": "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "styczen luty marzec kwiecien maj czerwiec lipiec sierpien wrzesien pazdziernik listopad grudzien",
    "pl genitive": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "da": "januar februar marts april maj juni juli august september oktober november december",
    "nb": "januar februar mars april mai juni juli august september oktober november desember",
    "fi": "tammikuu helmikuu maaliskuu huhtikuu toukokuu kesakuu heinakuu elokuu syyskuu lokakuu marraskuu joulukuu",
    "fi partitive": (
        "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesakuuta heinakuuta elokuuta syyskuuta lokakuuta "
        "marraskuuta joulukuuta"
    ),
    "cs": "leden unor brezen duben kveten cerven cervenec srpen zari rijen listopad prosinec",
    "cs genitive": "ledna unora brezna dubna kvetna cervna cervence srpna zari rijna listopadu prosince",
    "ru": "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "ru genitive": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "hu": "januar februar marcius aprilis majus junius julius augusztus szeptember oktober november december",
    "ro": "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "tr": "ocak subat mart nisan mayıs haziran temmuz agustos eylul ekim kasım aralık",
}
_SHORT: Final = {
    "en": "jan feb mar apr may jun jul aug sep oct nov dec",
    "en 4": "jan feb mar apr may june july aug sept oct nov dec",
    "de": "jan feb mrz apr mai jun jul aug sep okt nov dez",
    "de 4": "jan febr marz apr mai juni juli aug sept okt nov dez",
    "at": "janner feber maerz apr mai jun jul aug sep okt nov dez",
    "fr": "janv fevr mars avr mai juin juil aout sept oct nov dec",
    "es": "ene feb mar abr may jun jul ago sep oct nov dic",
    "it": "gen feb mar apr mag giu lug ago set ott nov dic",
    "pt": "jan fev mar abr mai jun jul ago set out nov dez",
    "nl": "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "pl": "sty lut mar kwi maj cze lip sie wrz paz lis gru",
    "nb": "jan feb mar apr mai jun jul aug sep okt nov des",
    "fi": "tammi helmi maalis huhti touko kesa heina elo syys loka marras joulu",
    "cs": "led uno bre dub kve cvn cvc srp zar rij lis pro",
    "ru": "янв февр март апр май июн июл авг сент окт нояб дек",
    "ru 3": "янв фев мар апр мая июн июл авг сен окт ноя дек",
    "hu": "jan febr marc apr maj jun jul aug szept okt nov dec",
    "ro": "ian feb mar apr mai iun iul aug sept oct noi dec",
    "tr": "oca sub mar nis may haz tem agu eyl eki kas ara",
    "es 4": "ene feb mar abr mayo jun jul ago set oct nov dic",
}
_WEEKDAYS: Final = (
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun "
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag mo di mi do fr sa so "
    "lundi mardi mercredi jeudi vendredi samedi dimanche lun mar mer jeu ven sam dim "
    "lunes martes miercoles jueves viernes sabado domingo mie jue vie sab dom "
    "lunedi martedi mercoledi giovedi venerdi domenica gio "
    "segunda terca quarta quinta sexta segunda-feira terca-feira quarta-feira quinta-feira sexta-feira seg ter qua qui "
    "sex maandag dinsdag woensdag donderdag vrijdag zaterdag zondag ma wo vr za zo "
    "poniedziałek wtorek sroda czwartek piatek sobota niedziela pon wt sr czw pt sob niedz nd "
    "mandag tirsdag tisdag onsdag torsdag fredag lordag lørdag sondag søndag man tirs ons tors fre "
    "lor son tis tor maanantai tiistai keskiviikko torstai perjantai lauantai sunnuntai ke to pe la su ti "
    "pondeli utery streda ctvrtek patek nedele po ut st ct pa ne "
    "понедельник вторник среда четверг пятница суббота воскресенье пн вт ср чт пт сб вс"
)


def folded(text: str) -> str:
    """Return a text without case and accents, so that names of months and days compare equal however they are
    spelled."""
    if text.isascii():
        return text.lower()
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare)


def _number_month_names() -> dict[str, int]:
    """Index the names of months in all languages, folded -> number, when the module is imported; raises ValueError if a
    name means two months."""
    names: dict[str, int] = {}
    for line in (*_FULL.values(), *_SHORT.values()):
        for number, name in enumerate(line.split(), 1):
            if names.setdefault(folded(name), number) != number:
                raise ValueError(f"{name} names two months")
    return names


MONTHS: Final = _number_month_names()
WEEKDAYS: Final = frozenset(map(folded, _WEEKDAYS.split()))
# One line per language, from Monday on; a word that stands for two days in two languages counts as both.
_WEEKS: Final = (
    "monday tuesday wednesday thursday friday saturday sunday", "mon tue wed thu fri sat sun",
    "mon tues wed thurs fri sat sun", "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "montag dienstag mittwoch donnerstag freitag sonnabend sonntag", "mo di mi do fr sa so",
    "lundi mardi mercredi jeudi vendredi samedi dimanche", "lun mar mer jeu ven sam dim",
    "lunes martes miercoles jueves viernes sabado domingo", "lun mar mie jue vie sab dom",
    "lunedi martedi mercoledi giovedi venerdi sabato domenica", "lun mar mer gio ven sab dom",
    "segunda terca quarta quinta sexta sabado domingo", "seg ter qua qui sex sab dom",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag", "ma di wo do vr za zo",
    "poniedziałek wtorek sroda czwartek piatek sobota niedziela", "pon wt sr czw pt sob nd",
    "mandag tisdag onsdag torsdag fredag lordag sondag", "man tis ons tor fre lor son",
    "mandag tirsdag onsdag torsdag fredag lørdag søndag", "man tir ons tor fre lør søn",
    "maanantai tiistai keskiviikko torstai perjantai lauantai sunnuntai", "ma ti ke to pe la su",
    "pondeli utery streda ctvrtek patek sobota nedele", "po ut st ct pa so ne",
    "понедельник вторник среда четверг пятница суббота воскресенье", "пн вт ср чт пт сб вс",
)  # fmt: skip
# Name -> the weekdays that it stands for, from 0 for Monday.
DAYS: Final = {
    name: {week.split().index(name) for week in _WEEKS if name in week.split()}
    for week in _WEEKS
    for name in week.split()
}
_WORD = re.compile(r"[^\W\d_]{2,}")


def names_another_weekday(text: str, day: date) -> bool:
    """Whether a date's text names a weekday that the date does not fall on; False if it names none."""
    if text.isascii() and text.lower() == text.upper():  # it has no letters
        return False
    weekdays = [DAYS[word] for word in map(folded, _WORD.findall(text)) if word in DAYS and word not in MONTHS]
    return bool(weekdays) and not any(day.weekday() in numbers for numbers in weekdays)


# The last year before each era of the Japanese calendar, and how many years it counted.
ERAS: Final = {"令和": (2018, 99), "平成": (1988, 31), "昭和": (1925, 64), "大正": (1911, 15), "明治": (1867, 45)}
ERAS_SHORT: Final = {"r": "令和", "h": "平成", "s": "昭和"}
