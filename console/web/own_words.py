"""What the pages of senders say, their own and that of an upload link, by language.

Whole sentences with named parameters; every language has every key.
"""

from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es")
_WORDS: Final[dict[str, tuple[str, str, str, str]]] = {
    "title": ("Your files", "Ihre Dateien", "Vos fichiers", "Sus archivos"),
    "drop": ("Drop a file", "Datei abgeben", "Déposer un fichier", "Entregar un archivo"),
    "choose": (
        "Drag files here or choose them",
        "Dateien hierher ziehen oder auswählen",
        "Glissez des fichiers ici ou choisissez-les",
        "Arrastre los archivos aquí o elíjalos",
    ),
    "folder": ("Folder (optional)", "Ordner (freiwillig)", "Dossier (facultatif)", "Carpeta (opcional)"),
    "send": ("Drop", "Abgeben", "Déposer", "Entregar"),
    "with_manifest": (
        "Drop a file with a manifest of your own",
        "Datei mit eigenem Manifest abgeben",
        "Déposer un fichier avec votre propre manifeste",
        "Entregar un archivo con un manifiesto propio",
    ),
    "templates": (
        "Blank workbooks to fill in",
        "Leere Arbeitsmappen zum Ausfüllen",
        "Classeurs vierges à remplir",
        "Libros en blanco para rellenar",
    ),
    "none": (
        "Nothing was dropped yet.",
        "Es wurde noch nichts abgegeben.",
        "Rien n'a encore été déposé.",
        "Todavía no se ha entregado nada.",
    ),
    "file": ("File", "Datei", "Fichier", "Archivo"),
    "when": ("Dropped", "Abgegeben", "Déposé", "Entregado"),
    "verdict": ("Result", "Ergebnis", "Résultat", "Resultado"),
    "next": ("What to do", "Was zu tun ist", "À faire", "Qué hacer"),
    "older": ("Older files", "Ältere Dateien", "Fichiers plus anciens", "Archivos anteriores"),
    "clean": (
        "Accepted without errors",
        "Ohne Fehler angenommen",
        "Accepté sans erreur",
        "Aceptado sin errores",
    ),
    "warnings": (
        "Accepted, with remarks",
        "Angenommen, mit Hinweisen",
        "Accepté, avec des remarques",
        "Aceptado, con observaciones",
    ),
    "errors": (
        "Rows with errors: {count}",
        "Zeilen mit Fehlern: {count}",
        "Lignes avec des erreurs : {count}",
        "Filas con errores: {count}",
    ),
    "refused": ("Not accepted", "Nicht angenommen", "Refusé", "No aceptado"),
    "failed": (
        "Could not be processed; the fault is not yours",
        "Konnte nicht verarbeitet werden; es liegt nicht an Ihnen",
        "N'a pas pu être traité ; ce n'est pas de votre fait",
        "No se pudo procesar; no es culpa suya",
    ),
    "review": (
        "A question about it is being answered",
        "Eine Frage dazu wird gerade geklärt",
        "Une question à son sujet est en cours d'examen",
        "Se está resolviendo una duda al respecto",
    ),
    "waiting": (
        "Waits for another file",
        "Wartet auf eine weitere Datei",
        "Attend un autre fichier",
        "Espera otro archivo",
    ),
    "busy": ("Being processed", "Wird verarbeitet", "En cours de traitement", "En proceso"),
    "scheduled": (
        "Scheduled for later",
        "Für später vorgemerkt",
        "Prévu pour plus tard",
        "Programado para más tarde",
    ),
    "replaced": (
        "Replaced by a newer version",
        "Durch eine neuere Fassung ersetzt",
        "Remplacé par une version plus récente",
        "Sustituido por una versión más reciente",
    ),
    "cancelled": ("Cancelled", "Abgebrochen", "Annulé", "Cancelado"),
    "expired": (
        "No longer kept",
        "Nicht mehr aufbewahrt",
        "N'est plus conservé",
        "Ya no se conserva",
    ),
    "fix": ("Fix in the browser", "Im Browser korrigieren", "Corriger dans le navigateur", "Corregir en el navegador"),
    "rejects": (
        "Download rejects.xlsx",
        "rejects.xlsx herunterladen",
        "Télécharger rejects.xlsx",
        "Descargar rejects.xlsx",
    ),
    "report": ("Open the report", "Bericht öffnen", "Ouvrir le rapport", "Abrir el informe"),
    "to_fix": ("What to fix", "Was zu korrigieren ist", "À corriger", "Qué corregir"),
    "sent": ("What you sent", "Was Sie gesendet haben", "Ce que vous avez envoyé", "Lo que envió"),
    "log_out": ("Log out", "Abmelden", "Se déconnecter", "Cerrar sesión"),
    "upload_title": ("Send a file", "Datei senden", "Envoyer un fichier", "Enviar un archivo"),
    "upload_file": (
        "Spreadsheet, at most {count} MB",
        "Tabelle, höchstens {count} MB",
        "Feuille de calcul, {count} Mo au plus",
        "Hoja de cálculo, {count} MB como máximo",
    ),
    "upload_send": ("Send", "Senden", "Envoyer", "Enviar"),
    "upload_keep": (
        "Keep the address of the next page: it shows what became of the file.",
        "Heben Sie die Adresse der nächsten Seite auf: Dort steht, was aus der Datei geworden ist.",
        "Conservez l'adresse de la page suivante : elle indique ce qu'est devenu le fichier.",
        "Guarde la dirección de la página siguiente: muestra qué ha pasado con el archivo.",
    ),
    "upload_received": (
        "Received and being checked. Load this page again in a moment.",
        "Angekommen, wird geprüft. Laden Sie diese Seite gleich noch einmal.",
        "Reçu, en cours de vérification. Rechargez cette page dans un instant.",
        "Recibido, se está comprobando. Vuelva a cargar esta página en un momento.",
    ),
    "upload_gone": (
        "This link does not exist or is no longer valid. Ask whoever sent it for another.",
        "Diesen Link gibt es nicht oder nicht mehr. Bitten Sie den Absender um einen anderen.",
        "Ce lien n'existe pas ou n'est plus valable. Demandez-en un autre à la personne qui vous l'a envoyé.",
        "Este enlace no existe o ya no es válido. Pida otro a quien se lo envió.",
    ),
    "upload_rows": ("Rows: {count}", "Zeilen: {count}", "Lignes : {count}", "Filas: {count}"),
    "result": ("Download the result", "Ergebnis herunterladen", "Télécharger le résultat", "Descargar el resultado"),
}

_FIXING: Final[dict[str, tuple[str, str, str, str]]] = {
    "title": (
        "Fix rows of {name}",
        "Zeilen von {name} korrigieren",
        "Corriger les lignes de {name}",
        "Corregir filas de {name}",
    ),
    "submit": ("Submit", "Senden", "Envoyer", "Enviar"),
    "submit_one": ("Submit 1 change", "1 Änderung senden", "Envoyer 1 modification", "Enviar 1 cambio"),
    "submit_many": (
        "Submit {count} changes",
        "{count} Änderungen senden",
        "Envoyer {count} modifications",
        "Enviar {count} cambios",
    ),
    "most": (
        "at most {count} at once",
        "höchstens {count} auf einmal",
        "{count} au plus à la fois",
        "como máximo {count} a la vez",
    ),
    "next": ("Next wrong cell", "Nächste falsche Zelle", "Cellule erronée suivante", "Siguiente celda errónea"),
    "undo": ("Undo", "Rückgängig", "Annuler", "Deshacer"),
    "sheet": ("Sheet", "Blatt", "Feuille", "Hoja"),
    "row": ("Row", "Zeile", "Ligne", "Fila"),
    "loading": ("Loading the rows …", "Die Zeilen werden geladen …", "Chargement des lignes …", "Cargando las filas …"),
    "errors_one": ("1 row has errors", "1 Zeile hat Fehler", "1 ligne a des erreurs", "1 fila tiene errores"),
    "errors_many": (
        "{count} rows have errors",
        "{count} Zeilen haben Fehler",
        "{count} lignes ont des erreurs",
        "{count} filas tienen errores",
    ),
    "cut": (
        "The first {count} are here; the others are in rejects.xlsx and come back after you submit.",
        "Die ersten {count} stehen hier; die übrigen sind in rejects.xlsx und kommen nach dem Senden wieder.",
        "Les {count} premières sont ici ; les autres sont dans rejects.xlsx et reviennent après l'envoi.",
        "Las primeras {count} están aquí; las demás están en rejects.xlsx y vuelven después de enviar.",
    ),
    "place": (
        "{column}, row {row}: {message}",
        "{column}, Zeile {row}: {message}",
        "{column}, ligne {row} : {message}",
        "{column}, fila {row}: {message}",
    ),
    "done": (
        "No cell is marked as wrong any more.",
        "Keine Zelle ist mehr als falsch markiert.",
        "Plus aucune cellule n'est marquée comme erronée.",
        "Ya no hay celdas marcadas como erróneas.",
    ),
    "checking": ("Checking …", "Wird geprüft …", "Vérification …", "Comprobando …"),
    "unchecked": (
        "These rows cannot be checked here; submit to see what the whole file gives.",
        "Diese Zeilen lassen sich hier nicht prüfen; senden Sie sie, dann wird die ganze Datei geprüft.",
        "Ces lignes ne peuvent pas être vérifiées ici ; envoyez-les pour vérifier tout le fichier.",
        "Estas filas no se pueden comprobar aquí; envíelas para comprobar todo el archivo.",
    ),
    "still": (
        "{count} still wrong in the rows you changed",
        "Noch {count} falsch in den geänderten Zeilen",
        "Encore {count} erreurs dans les lignes modifiées",
        "Aún {count} errores en las filas cambiadas",
    ),
    "fits": (
        "What you changed fits the rules.",
        "Ihre Änderungen erfüllen die Regeln.",
        "Vos modifications respectent les règles.",
        "Sus cambios cumplen las reglas.",
    ),
    "missing": (
        "The rows cannot be shown here; download rejects.xlsx instead.",
        "Die Zeilen können hier nicht gezeigt werden; laden Sie rejects.xlsx herunter.",
        "Les lignes ne peuvent pas être affichées ici ; téléchargez rejects.xlsx.",
        "Las filas no se pueden mostrar aquí; descargue rejects.xlsx.",
    ),
    "wrong": ("wrong", "falsch", "erroné", "erróneo"),
    "changed": ("changed", "geändert", "modifié", "cambiado"),
    "right": (
        "changed, fits the rules",
        "geändert, erfüllt die Regeln",
        "modifié, respecte les règles",
        "cambiado, cumple las reglas",
    ),
    "keys": (
        (
            "Type to change a cell; Enter, F2 or a second click edits it. Shift with arrows selects, with "
            "Ctrl to the end. Ctrl+D fills down, Ctrl+V pastes, Ctrl+Z undoes."
        ),
        (
            "Tippen ändert eine Zelle; Enter, F2 oder ein zweiter Klick bearbeitet sie. Umschalt mit Pfeilen"
            " wählt aus, mit Strg bis zum Ende. Strg+D füllt nach unten aus, Strg+V fügt ein, Strg+Z macht "
            "rückgängig."
        ),
        (
            "Tapez pour modifier une cellule ; Entrée, F2 ou un second clic l'ouvre. Maj avec les flèches "
            "sélectionne, avec Ctrl jusqu'au bout. Ctrl+D recopie vers le bas, Ctrl+V colle, Ctrl+Z annule."
        ),
        (
            "Escriba para cambiar una celda; Intro, F2 o un segundo clic la edita. Mayús con flechas "
            "selecciona, con Ctrl hasta el final. Ctrl+D rellena hacia abajo, Ctrl+V pega, Ctrl+Z deshace."
        ),
    ),
    "checked": (
        "Cells are checked by the workflow's rules as you type; the whole file is checked when you submit.",
        "Zellen werden beim Tippen nach den Regeln geprüft, die ganze Datei nach dem Senden.",
        "Les cellules sont vérifiées pendant la saisie, tout le fichier après l'envoi.",
        "Las celdas se comprueban mientras escribe; el archivo entero, al enviar.",
    ),
    "bare": (
        (
            "Editing here needs scripts. Without them, download rejects.xlsx, correct the red cells and drop"
            " the file beside the first one."
        ),
        (
            "Das Bearbeiten hier braucht Skripte. Laden Sie sonst rejects.xlsx herunter, korrigieren Sie die"
            " roten Zellen und geben Sie die Datei neben der ersten ab."
        ),
        (
            "La correction ici demande des scripts. Sinon, téléchargez rejects.xlsx, corrigez les cellules "
            "rouges et déposez le fichier à côté du premier."
        ),
        (
            "Para corregir aquí hacen falta scripts. Si no, descargue rejects.xlsx, corrija las celdas rojas"
            " y entregue el archivo junto al primero."
        ),
    ),
}


def words(accepted: str) -> dict[str, str]:
    """The sentences in the first language of an Accept-Language header that there is; English if there is none."""
    names = [part.partition(";")[0].strip().lower()[:2] for part in accepted[:200].split(",")]
    language = next((name for name in names if name in LANGUAGES), LANGUAGES[0])
    return _in_language(_WORDS, language) | {"language": language}


def fixing_words(language: str) -> dict[str, str]:
    """What the page says on which rows are corrected, in one of the languages."""
    return _in_language(_FIXING, language)


def _in_language(sentences: dict[str, tuple[str, str, str, str]], language: str) -> dict[str, str]:
    column = LANGUAGES.index(language)
    return {key: spoken[column] for key, spoken in sentences.items()}
