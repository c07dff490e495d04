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


def words(accepted: str) -> dict[str, str]:
    """The sentences in the first language of an Accept-Language header that there is; English if there is none."""
    names = [part.partition(";")[0].strip().lower()[:2] for part in accepted[:200].split(",")]
    language = next((name for name in names if name in LANGUAGES), LANGUAGES[0])
    column = LANGUAGES.index(language)
    return {key: sentences[column] for key, sentences in _WORDS.items()} | {"language": language}
