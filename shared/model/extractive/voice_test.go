package extractive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVoiceOfTheReportIsNoClaimOfAPage(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{ // "" for none
		// A claim is left.
		"The cost study we rely on estimates that a mill takes 40 million euros.":                  "The cost study estimates that a mill takes 40 million euros.",
		"The survey that we used counts 40 mills.":                                                 "The survey counts 40 mills.",
		"The largest owner in our sources, Halden Paper, has 320 workers.":                         "The largest owner, Halden Paper, has 320 workers.",
		"In our sources, the mill has 320 workers.":                                                "The mill has 320 workers.",
		"We found that the mill has 320 workers.":                                                  "The mill has 320 workers.",
		"The deed, which we read in translation, names 1989.":                                      "The deed names 1989.",
		"The mill has 320 workers, as we noted above.":                                             "The mill has 320 workers.",
		"We found no data on dryers. One producer (Talmo) gives a 10-year guarantee.":              "One producer (Talmo) gives a 10-year guarantee.",
		"Die Kostenstudie, auf die wir uns stützen, nennt 40 Mio. Euro.":                           "Die Kostenstudie nennt 40 Mio. Euro.",
		"Der größte Betreiber in unseren Quellen ist Halden Papier mit 320 Leuten.":                "Der größte Betreiber ist Halden Papier mit 320 Leuten.",
		"L'étude de coûts sur laquelle nous nous appuyons donne 40 millions d'euros.":              "L'étude de coûts donne 40 millions d'euros.",
		"Nous avons constaté que l'usine compte 320 salariés.":                                     "L'usine compte 320 salariés.",
		"El estudio de costes en el que nos basamos calcula 40 millones de euros para la fábrica.": "El estudio de costes calcula 40 millones de euros para la fábrica.",
		"En nuestras fuentes, la fábrica tiene 320 trabajadores.":                                  "La fábrica tiene 320 trabajadores.",
		"Fire was the usual cause of loss in the mills we read about.":                             "Fire was the usual cause of loss in the mills.",
		// None is.
		"The mill in Moss is the only mill we found.":                                              "",
		"We could not find the price of the mill.":                                                 "",
		"The prices that matter to us are those of 2019.":                                          "",
		"Our reading of the deeds is that the mill was sold in 1989.":                              "",
		"The statement on the Danish owner comes from one trade article.":                          "",
		"The statement on the Danish owner comes from one trade article, which we read in Danish.": "",
		"This figure is taken from a single press release.":                                        "",
		"The decisive signs to watch are the price of bark and the opening in 2027.":               "",
		"Key milestones to watch: the opening in 2027 and the sale in 2028.":                       "",
		"The newsletter report confirms the later date and quotes the owner.":                      "",
		"The sources disagree on the year.":                                                        "",
		"No source names the price of the mill.":                                                   "",
		"This report covers 40 mills in Norway.":                                                   "",
		"Die Aussage über den dänischen Eigentümer stammt aus einem Fachartikel.":                  "",
		"Wir haben keine Angaben zum Preis der Mühle gefunden.":                                    "",
		"Die Quellen widersprechen sich beim Jahr des Verkaufs.":                                   "",
		"Der Bericht der Zeitung bestätigt das spätere Datum.":                                     "",
		"L'information sur le propriétaire provient d'un seul article.":                            "",
		"Les signes décisifs à surveiller sont le prix et l'ouverture en 2027.":                    "",
		"Les sources se contredisent sur la date de la vente.":                                     "",
		"Nous n'avons trouvé aucun prix pour l'usine.":                                             "",
		"La información sobre el dueño procede de un solo artículo.":                               "",
		"No hemos encontrado el precio de la fábrica.":                                             "",
		"Las fuentes difieren en el año de la venta.":                                              "",
		"Más información: véase el plan de la fábrica.":                                            "",
	} {
		got, ok := Claim(statement)
		require.Equal(t, want != "", ok, "%s: %s", statement, got)
		if ok {
			require.Equal(t, want, got)
		}
	}
}

func TestAClaimThatOnlySoundsLikeTheReportStands(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"The owner said \"we will sell our mill in 2027\".",
		"Der Eigentümer sagte: „Wir verkaufen unsere Mühle 2027.“",
		"Le directeur a dit « nous vendons notre usine » en 2027.",
		"The US sold 40 mills in 2019.",
		"The air we breathe is 21 percent oxygen.",
		"Our planet has 40 such rivers.",
		"Caffeine helps us stay awake for 4 hours.",
		"Unsere Erde ist 4,5 Milliarden Jahre alt.",
		"The survey comes from 40 mills in Norway.",
		"The report of the Nordvik Institute names 40 mills.",
		"Energy sources differ in price: 40 euros for bark and 90 for oil.",
		"Most energy sources emit 40 kg.",
		"The newspaper confirmed a sale of 40 mills in 2019.",
		"Watch makers of Moss sold 900 watches in 2019.",
		"Die Quellen der Glomma liegen auf 690 m.",
		"Les sources chaudes de Moss atteignent 40 degrés.",
		"Las fuentes de Moss dan 40 litros por segundo.",
		"The statement of the owner led to 40 strikes in 2019.",
	} {
		got, ok := Claim(s)
		require.True(t, ok, s)
		require.Equal(t, s, got)
	}
}
