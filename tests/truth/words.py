"""Words to fill tables with."""


def _each(words: str) -> list[str]:
    return words.split()


FIRST = _each(
    "Ann Bob Cid Dora Eve Finn Gus Hana Ivo Jan Kim Lea Mia Noor Ole Pia Quin Rosa Sue Tom Uma Vera Will Xenia Yara "
    "Zoe Anders Brigit Carlos Dmitri Elena Fatima Giorgio Henrik Ingrid Jorge Katarzyna Ludovic Marek Nadia"
)
LAST = _each(
    "Lee Ray Fox May Smith Brown Jones Silva Costa Moreau Dubois Meyer Weber Rossi Bianchi Novak Kowalski Hansen "
    "Olsen Larsen Virtanen Papadakis Yilmaz Haddad Cohen Singh Patel Tanaka Sato Kim Park Chen Wang Nguyen Okafor"
)
CITIES = _each(
    "Oslo Rome Lima Bonn Paris Madrid Lisbon Vienna Prague Warsaw Krakow Athens Dublin Bergen Turin Porto Geneva "
    "Basel Zurich Munich Berlin Hamburg Leipzig Ghent Bruges Utrecht Delft Leiden Malmo Uppsala Tampere Turku Riga "
    "Vilnius Tallinn Kyiv Odesa Sofia Varna Split Zagreb Ljubljana Graz Linz Salzburg Brno Ostrava Kosice Szeged"
)
COUNTRIES = _each(
    "Norway Italy Peru Germany France Spain Portugal Austria Poland Greece Ireland Belgium Sweden Finland Latvia"
)
GOODS = _each(
    "bolt nut washer screw hinge bracket panel lamp cable socket switch fuse relay motor pump valve filter gasket "
    "hose clamp ladder bucket brush roller shelf drawer cabinet table chair stool bench mirror curtain carpet"
)
COLOURS = _each("red blue green black white grey yellow orange brown purple")
SENTENCES = (
    "Called back on Monday", "Waits for the second invoice", "Please ship with the next order", "Paid in advance",
    "Do not stack more than four boxes", "Moved from the old list", "Asked for a copy of the contract",
    "Returned twice, second time without the box", "Ring the bell at the side door", "Ok", "See the mail of last week",
)  # fmt: skip
SOUNDS_LIKE_TOTAL = (
    "Mean Well PSU", "Balance bike", "Total Wine & More", "Sum Ting Noodles", "Average Joe's Gym", "Net curtain",
    "Grand Hotel", "Gross beat mixer", "Subtotal Records Ltd", "Totally Spicy Sauce", "Median strip paint",
    "Carried Away Travel", "Balance board", "Count Basie LP", "Summit tent", "Totale Sicherheit GmbH", "Max Planck mug",
)  # fmt: skip
TOTALS = {
    "en": ("Total", "Subtotal", "Grand total"), "de": ("Gesamtsumme", "Zwischensumme", "Summe"),
    "ru": ("Итого", "Всего"), "ja": ("合計", "小計"), "pl": ("Suma", "Razem"), "nl": ("Totaal", "Subtotaal"),
    "fr": ("Total général", "Sous-total"), "es": ("Total general", "Subtotal"), "it": ("Totale", "Totale parziale"),
    "pt": ("Total geral", "Subtotal"), "tr": ("Toplam", "Ara toplam"), "sv": ("Summa", "Delsumma"), "cs": ("Celkem",),
    "zh": ("总计", "小计"),
}  # fmt: skip
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
}
BOOLEANS = {
    "en": ("Yes", "No"), "de": ("Ja", "Nein"), "fr": ("Oui", "Non"), "es": ("Sí", "No"), "it": ("Sì", "No"),
    "pt": ("Sim", "Não"), "nl": ("ja", "nee"), "letters": ("Y", "N"), "words": ("true", "false"), "digits": ("1", "0"),
}  # fmt: skip
# Words of a language in the letters that its legacy encodings are for.
SCRIPTS = {
    "western": _each(
        "Müller Größe Zoë café naïve façade señor año Ødegård Ångström crème brûlée Straße über Œuvre garçon"
    ),
    "central": _each(
        "Łódź Kraków Dvořák Škoda Žižkov Györ Székesfehérvár Čapek Říha Świętokrzyskie źródło żółw ćma Český ďábel"
    ),
    "hungarian": _each("Győr Szőlő Hűség Fűtő Erdő Tűzoltó Bőrönd Kőszeg Lövő Eger időjárás műhely üröm körút"),
    "cyrillic": _each(
        "Москва Иванов Петрова Казань Санкт Петербург улица товар счёт оплата Щербаков Юрий Ялта эхо объект"
    ),
    "greek": _each("Αθήνα Θεσσαλονίκη Παπαδόπουλος Γιώργος Ελένη τιμολόγιο ποσότητα ημερομηνία Ψυχικό Ξάνθη Όλγα ώρα"),
    "turkish": _each("İstanbul Şükrü Çağlar Ağrı ışık günü öğrenci müşteri sözleşme Diyarbakır Eskişehir İzmir Muğla"),
    "hebrew": _each("שלום ירושלים חשבון כהן לוי תשלום לקוח רחוב מספר תאריך"),
    "arabic": _each("مرحبا القاهرة محمد فاتورة العميل شارع رقم تاريخ مدينة الدفع"),
    "baltic": _each("Rīga Šiauliai Žemaitija Ģirts Ķekava Ļaudona Ņina Čiurlionis Ėglė Ūla Jūrmala Daugavpils"),
    "japanese": _each("株式会社 山田太郎 さくら データ 東京都 大阪府 注文 数量 カタカナ 北海道 請求書 顧客"),
    "chinese": _each("北京市 上海 订单 客户 数量 张伟 李娜 发票 地址 广州 深圳 电话"),
    "taiwanese": _each("臺北市 高雄 訂單 客戶 數量 陳先生 發票 地址 電話 新竹縣 價格"),
    "korean": _each("서울 부산 주문 고객 수량 김철수 이영희 송장 주소 대구 전화 가격"),
}
ENCODINGS = {
    "cp1252": "western", "latin-1": "western", "iso8859-15": "western", "cp850": "western", "mac-roman": "western",
    "cp1250": "central", "iso8859-2": "central", "cp1251": "cyrillic", "koi8-r": "cyrillic", "cp866": "cyrillic",
    "iso8859-5": "cyrillic", "cp1253": "greek", "iso8859-7": "greek", "cp1254": "turkish", "cp1255": "hebrew",
    "cp1256": "arabic", "cp1257": "baltic", "shift_jis": "japanese", "euc_jp": "japanese", "gb18030": "chinese",
    "big5": "taiwanese", "euc_kr": "korean",
}  # fmt: skip
