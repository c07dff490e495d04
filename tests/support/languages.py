"""Words of many languages and the older encodings that people write them in, for files with known contents."""

# ruff: noqa: RUF001  # letters of other scripts are what this module is about

WESTERN = ("cp1252", "iso8859-15", "mac-roman", "cp850")
CENTRAL = ("cp1250", "iso8859-2", "cp852")
CYRILLIC = ("cp1251", "koi8-r", "cp866", "iso8859-5")

# language: encodings, then words as a person would find them in a column
LANGUAGES = {
    "French": (WESTERN, "fenêtre déjà clé musée marché février août décembre Genève Sophie Hervé théière crêpe moitié problème élevé Québec façade naïf dîner"),
    "German": (WESTERN, "Bürste Löffel Schlüssel März Straße Mädchen Österreich grün süß Tür Bäcker höher Größe Zürich Brötchen Fuß Kühlschrank Währung Übung Käse"),
    "Spanish": (WESTERN, "enero sábado miércoles jardín cañón limón baño compañía ratón árbol difícil azúcar médico Sebastián Bogotá Perú México pingüino sueño avión"),
    "Portuguese": (WESTERN, "março sábado pão maçã irmão feijão calção relógio farmácia Açores Funchal Conceição reunião três lâmpada avião açúcar Câmara música opção"),
    "Swedish": (WESTERN, "mars lördag söndag fönster kök sjö träd skärm nyckel öppen hög låg trädgård gård måndag Skåne Dalälven hjärta ärende källa"),
    "Danish": (WESTERN, "lørdag søndag dør køkken sø træ høj lav gård måned Århus Odense ånd hjælp kærlighed ønske øre våd tørre sæbe"),
    "Polish": (CENTRAL, "styczeń październik sobota okno dąb łóżko mąka śnieg żaba źle córka wąż kość Śląsk Wrocław Gdynia dziękuję płatność zamówienie odległość"),
    "Czech": (CENTRAL, "únor březen říjen středa čtvrtek sníh dveře stůl židle Brno Třinec Šumava řeka město účtenka žádost objednávka množství řízení ještěrka"),
    "Hungarian": (CENTRAL, "január február április október hétfő szerda ablak ajtó szék könyvtár fő erdő mező nő gyümölcs hűség tűz űrlap rendelés mennyiség"),
    "Croatian": (CENTRAL, "siječanj ožujak srpanj četvrtak nedjelja prozor vrata stolica rijeka šuma kiša mačka čaša žlica računalo količina narudžba plaćanje Poreč Omiš"),
    "Russian": (CYRILLIC, "январь февраль понедельник среда окно дверь стол стул река дерево снег заказ количество Тверь Сочи Волга яблоко хлеб молоко ёлка"),
    "Ukrainian": (("cp1251", "koi8-u"), "січень лютий понеділок середа вікно двері стіл ріка сніг замовлення кількість Полтава Суми Дніпро яблуко хліб їжа євро ґрунт місяць"),
    "Greek": (("cp1253", "iso8859-7"), "Ιανουάριος Φεβρουάριος Δευτέρα Τετάρτη παράθυρο πόρτα τραπέζι καρέκλα ποτάμι δέντρο χιόνι παραγγελία ποσότητα Ρόδος Κέρκυρα μήλο ψωμί γάλα θάλασσα ήλιος"),
    "Turkish": (("cp1254", "iso8859-9"), "ocak şubat salı çarşamba perşembe pencere kapı sandalye ağaç kış sipariş miktar Bursa Eskişehir Muğla ekmek süt çiçek gün ışığı yağmur"),
    "Hebrew": (("cp1255", "iso8859-8"), "ינואר פברואר יום שני רביעי חלון דלת שולחן כיסא נהר עץ שלג הזמנה אילת צפת תפוח לחם חלב ים שמש"),
    "Arabic": (("cp1256", "iso8859-6"), "يناير فبراير الاثنين الأربعاء نافذة باب طاولة كرسي نهر شجرة ثلج طلب المنصورة أسوان تفاح خبز حليب بحر شمس قمر"),
    "Lithuanian": (("cp1257", "iso8859-13"), "sausis kovas antradienis penktadienis langas durys kėdė upė medis žiema užsakymas kiekis Kaunas Biržai obuolys duona jūra saulė žuvis ąsotis"),
    "Thai": (("cp874",), "มกราคม กุมภาพันธ์ จันทร์ พุธ หน้าต่าง ประตู โต๊ะ เก้าอี้ แม่น้ำ ต้นไม้ หิมะ คำสั่งซื้อ ปริมาณ ลำปาง ตรัง แอปเปิ้ล ขนมปัง นม ทะเล แดด"),
    "Japanese": (("shift_jis", "euc_jp"), "一月 二月 月曜日 水曜日 窓 ドア 机 椅子 川 木 雪 注文 数量 長崎 広島 りんご パン 牛乳 海 太陽 おはよう メール"),
    "Chinese": (("gb18030",), "一月 二月 星期一 星期三 窗户 门 桌子 椅子 河流 树木 雪 订单 数量 苏州 昆明 苹果 面包 牛奶 大海 太阳 有限公司 中国银行"),
    "Taiwanese": (("big5",), "一月 二月 星期一 星期三 窗戶 門 桌子 椅子 河流 樹木 雪 訂單 數量 花蓮 宜蘭 蘋果 麵包 牛奶 大海 太陽 有限公司 國立大學"),
    "Korean": (("cp949",), "일월 이월 월요일 수요일 창문 문 책상 의자 강 나무 눈 주문 수량 전주 강릉 사과 빵 우유 바다 태양 주식회사 대한민국"),
}  # fmt: skip


def words_of(language: str) -> list[str]:
    return LANGUAGES[language][1].split()
