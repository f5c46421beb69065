package extractive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

// TestWhatOnlyOneCanHaveIsContradicted: who did it, the place in an order, how many times, how many of them all, in either order of the two.
func TestWhatOnlyOneCanHaveIsContradicted(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"7 percent of the eggs were lost.", "9 percent of the eggs was lost."},
		{"In 2020, 7 percent of the harvest was lost.", "9 percent of the harvest was lost in 2020."},
		{"The storm damaged 40 houses in Denby.", "In Denby 55 houses were damaged by the storm."},
		{"The mine produced 40 tonnes of copper in 2020.", "Copper production of the mine was 60 tonnes in 2020."},
		{"The company employed 400 workers in 2020.", "In 2020 the company had 520 employees."},
		{"12 percent of the patients died.", "18 percent of the patients have died."},
		{"The city recycles 40 percent of its waste.", "55 percent of the city's waste is recycled."},
		{"The flood destroyed 40 bridges.", "70 bridges were destroyed in the flood."},
		{"Der Sturm beschädigte 40 Häuser in Wahlen.", "In Wahlen wurden 55 Häuser durch den Sturm beschädigt."},
		{"Das Werk beschäftigt 400 Menschen.", "Im Werk sind 520 Menschen beschäftigt."},
		{"Die Firma verlor 2020 12 Prozent ihrer Kunden.", "2020 hat die Firma 19 Prozent ihrer Kunden verloren."},
		{"La tormenta dañó 40 casas en Almar.", "En Almar 55 casas fueron dañadas por la tormenta."},
		{"La planta produjo 40 toneladas de cobre en 2020.", "En 2020 la planta ha producido 60 toneladas de cobre."},
		{"La tempête a endommagé 40 maisons.", "55 maisons ont été endommagées par la tempête."},
		{"Les pluies détruisirent 12 % de la récolte.", "19 % de la récolte a été détruite par les pluies."},
		{"The bridge is half as long as the tunnel.", "The bridge is twice as long as the tunnel."},
		{"The new mill makes half as many tiles as the old one.", "The new mill makes three times as many tiles as the old one."},
		{"The lake is half the size of Orlin.", "The lake is twice the size of Orlin."},
		{"The island is a third as large as Norland.", "The island is half as large as Norland."},
		{"El tren es el doble de rápido que el autobús.", "El tren es la mitad de rápido que el autobús."},
		{"Der Zug ist dreimal so schnell wie der Bus.", "Der Zug ist halb so schnell wie der Bus."},
		{"Orlin is the second-highest peak of the range.", "Orlin is the range's third-highest peak."},
		{"Brandt ist der drittgrößte Hersteller von Pumpen in Europa.", "Brandt ist der größte Hersteller von Pumpen in Europa."},
		{"Brandt est le troisième plus grand fabricant de pompes d'Europe.", "Brandt est le plus grand fabricant de pompes d'Europe."},
		{"Brandt es el tercer mayor fabricante de bombas de Europa.", "Brandt es el mayor fabricante de bombas de Europa."},
		{"Veyra was the first city in Norland to ban cars.", "Veyra was the third city in Norland to ban cars."},
		{"Orlin took second place in the race of 2012.", "Orlin took third place in the race of 2012."},
		{"Orlin belegte 2012 den zweiten Platz.", "Orlin belegte 2012 den dritten Platz."},
		{"Norland is the world's largest exporter of tin.", "Norland is the world's third-largest exporter of tin, according to the ministry."},
		{"The Orlin Dam was constructed by the Brandt Group.", "The Orlin Dam was constructed by Carrow Holdings."},
		{"Das Schloss wurde vom Architekten Emil Kastner erbaut.", "Das Schloss wurde von Paul Lenz erbaut."},
		{"Louis Marchand a fondé l'école en 1901.", "L'école a été fondée par Paul Girard en 1901."},
		{"Luis Ortega escribió la novela.", "La novela fue escrita por Ana Belmonte."},
		{"Carmen Ruiz descubrió el cometa en 1931.", "Pablo Serra descubrió el cometa en 1931."},
		{"Ruth Amsel entdeckte den Asteroiden 1987.", "Jonas Feld entdeckte den Asteroiden 1987."},
		{"All 12 reactors were shut.", "Of the 12 reactors, only 7 were shut."},
		{"The fire spared all 30 houses.", "The fire spared just 12 of the 30 houses."},
		{"Alle 12 Reaktoren wurden abgeschaltet.", "Von den 12 Reaktoren wurden nur 7 abgeschaltet."},
		{"Die 12 Reaktoren wurden alle abgeschaltet.", "7 der 12 Reaktoren wurden abgeschaltet."},
		{"Toutes les 48 écoles ont été fermées.", "Seulement 31 des 48 écoles ont été fermées."},
		{"Todas las 48 escuelas fueron cerradas.", "De las 48 escuelas, solo 31 fueron cerradas."},
		{"All 48 states signed the treaty.", "31 out of 48 states signed the treaty."},
		{"Ida Holm was the first woman to lead the bank.", "Ida Holm was the second woman to lead the bank."},
		{"Ostrava is the second largest city in the region by population.", "Ostrava is the largest city in the region by population."},
	} {
		for _, order := range [][2]string{c, {c[1], c[0]}} {
			got, why := judge(order[0], order[1])
			require.Equal(t, model.Contradiction, got, "%s\n%s\n%s", order[0], order[1], why)
		}
	}
}

// TestWhatSeveralCanHaveIsNotContradicted: several did it, it was done to several, it only says which one is meant, or it is told from the other side.
func TestWhatSeveralCanHaveIsNotContradicted(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"The storm damaged 40 houses in Denby.", "The storm destroyed 12 houses in Denby."},
		{"12 percent of the patients died.", "18 percent of the patients recovered."},
		{"The city recycles 40 percent of its waste.", "The city burns 55 percent of its waste."},
		{"La tormenta dañó 40 casas en Almar.", "La tormenta destruyó 12 casas en Almar."},
		{"The bridge is half as long as the tunnel.", "The tunnel is twice as long as the bridge."},
		{"Der Zug ist doppelt so schnell wie der Bus.", "Der Bus ist halb so schnell wie der Zug."},
		{"The old pump is four times as loud as the new pump.", "The new pump is a quarter as loud as the old pump."},
		{"Half the houses in Denby are as old as the church.", "The houses in Denby are twice as old as the church."},
		{"He gave half as a deposit.", "He gave twice the deposit."},
		{"Norland is among the largest exporters of tin.", "Norland is the third-largest exporter of tin."},
		{"Norland was the largest exporter of tin.", "Norland is now the third-largest exporter of tin."},
		{"The second-largest city of Norland lies by the sea.", "The largest city of Norland lies by the sea."},
		{"It is the largest lake in Norland.", "It is the second-largest lake in Norland."},
		{"He lives in the second-oldest house in Denby.", "He lives in the oldest house in Denby."},
		{"The mill that is the largest in Norland was sold.", "The mill that is the second-largest in Norland was sold."},
		{"Brandt is the largest maker of pumps by sales.", "Brandt is the second-largest maker of pumps by staff."},
		{"The first reactor was shut in 2019.", "The third reactor was shut in 2019."},
		{"Orlin won first prize.", "Orlin won third prize."},
		{"Oster was bought by Brandt.", "Oster was bought by Quillon."},
		{"Gas was bought by Norland in 2019.", "Gas was bought by Sudland in 2019."},
		{"A bridge was built by Henrik Saunders.", "A bridge was built by Edwin Thorpe."},
		{"In Rask, a bridge was built by Henrik Saunders.", "In Rask, a bridge was built by Edwin Thorpe."},
		{"Houses were built by Henrik Saunders.", "Houses were built by Edwin Thorpe."},
		{"The houses were built by Henrik Saunders.", "The houses were built by Edwin Thorpe."},
		{"The church was built by Romans.", "The church was built by Edwin Thorpe."},
		{"The church was built by Henrik Saunders & Sons.", "The church was built by Edwin Thorpe."},
		{"The church was built by Henrik Saunders, Carla Menzi and others.", "The church was built by Edwin Thorpe."},
		{"The church was built by Henrik Saunders with Carla Menzi.", "The church was built by Edwin Thorpe."},
		{"The church was designed by Henrik Saunders.", "The church was built by Edwin Thorpe."},
		{"The church was designed by the Brandt Group.", "The church was designed by Edwin Thorpe."},
		{"The church was not built by Henrik Saunders.", "The church was not built by Edwin Thorpe."},
		{"The church may have been built by Henrik Saunders.", "The church may have been built by Edwin Thorpe."},
		{"The law was discovered by Dmitri Mendeleev.", "The law was discovered by Dmitry Mendeleyev."},
		{"The wall was built by Norland.", "The wall was built by Edwin Thorpe."},
		{"30 percent of Oster was bought by Brandt in 2019.", "30 percent of Oster was bought by Quillon in 2019."},
		{"Edwin Thorpe designed a house in Rask.", "Carla Menzi designed a house in Rask."},
		{"Edwin Thorpe designed the stamps.", "Carla Menzi designed the stamps."},
		{"Edwin Thorpe discovered gold in Rask in 1931.", "Carla Menzi discovered gold in Rask in 1931."},
		{"Otto Reiners entwarf die Häuser am Markt.", "Emil Kastner entwarf die Häuser am Markt."},
		{"Das Rathaus wurde von Arbeitern gebaut.", "Das Rathaus wurde von Otto Reiners gebaut."},
		{"Ein Rathaus wurde von Emil Kastner gebaut.", "Ein Rathaus wurde von Otto Reiners gebaut."},
		{"Les maisons ont été construites par Louis Marchand.", "Les maisons ont été construites par Paul Girard."},
		{"Las casas fueron construidas por Luis Ortega.", "Las casas fueron construidas por Ana Belmonte."},
		{"La casa fue construida por Luis Ortega y Ana Belmonte.", "La casa fue construida por Pablo Serra."},
		{"La casa fue visitada por Luis Ortega.", "La casa fue visitada por Pablo Serra."},
		{"Its first plant was built by Henrik Saunders.", "Its first plant was built by Edwin Thorpe."},
		{"It was built by Henrik Saunders in 1890.", "It was built by Edwin Thorpe in 1890."},
		{"The old part of the church was built by Henrik Saunders.", "The old part of the church was built by Edwin Thorpe."},
		{"According to Ida Holm, the play was written by Henrik Saunders.", "According to Karl Vester, the play was written by Edwin Thorpe."},
		{"Almost all 48 states signed the treaty.", "Only 47 of the 48 states signed the treaty."},
		{"Not all 48 states signed the treaty.", "Only 31 of the 48 states signed the treaty."},
		{"All 48 states signed the treaty.", "Some 31 of the 48 states signed the treaty in 2019."},
		{"The 48 states were visited by all members.", "31 of the 48 states were visited by members."},
		{"All 48 states signed the treaty.", "31 of the 48 states ratified the treaty."},
		{"All 48 states signed the treaty.", "More than 31 of the 48 states signed the treaty."},
		{"All 48 states signed the treaty.", "More than 31 of the 48 states signed the treaty."},
		{"Alle 12 Reaktoren wurden geprüft.", "7 der 12 Reaktoren wurden abgeschaltet."},
		{"The first woman to lead the bank was praised.", "The second woman to lead the bank was praised."},
		{"Ida Holm was the first to arrive and the last to leave.", "Ida Holm was the second to arrive and the first to leave."},
		{"The mill was the first of three to close.", "The mill was the second to close in 2010."},
		{"Rask finished first in the race of 2019.", "Rask finished third in the race of 2018."},
		{"Rask is Norland's largest port.", "Rask was Norland's second-largest port."},
		{"Rask was Norland's largest port in 1910.", "Rask was Norland's second-largest port in 1960."},
		{"Die Firma ist einer der größten Hersteller von Pumpen.", "Die Firma ist der zweitgrößte Hersteller von Pumpen."},
		{"Rask est l'un des plus grands ports du pays.", "Rask est le deuxième plus grand port du pays."},
		{"Rask es uno de los puertos más grandes del país.", "Rask es el segundo puerto más grande del país."},
		{"Rask is not the largest port.", "Rask is the second-largest port."},
		{"Der zweitgrößte Hafen des Landes wurde geschlossen.", "Der größte Hafen des Landes wurde geschlossen."},
		{"La segunda ciudad más grande del país está en el norte.", "La ciudad más grande del país está en el norte."},
		{"Die Brücke wurde von Brandt Bau und Oster Stahl gebaut.", "Die Brücke wurde von Carrow Stahl gebaut."},
		{"Das Buch wurde von Ruth Amsel gelobt.", "Das Buch wurde von Jonas Feld gelobt."},
		{"The code was written by Ada Brock, a Dane, and Ivo Castell.", "The code was written by Marta Quist, a Swede."},
		{"The code was written by Ada Brock in 2010.", "The code was written by Marta Quist in 2015."},
		{"The mill in Denby was built by Ada Brock.", "The mill in Harlow was built by Marta Quist."},
		{"The first mill was built by Ada Brock.", "The second mill was built by Marta Quist."},
		{"The mill was rebuilt by Ada Brock.", "The mill was built by Marta Quist."},
		{"The mill was built for Ada Brock.", "The mill was built by Marta Quist."},
		{"Ada Brock founded the school in Rask with her sister.", "Marta Quist founded the school in Rask."},
		{"The school was founded by Ada Brock.", "Ada Brock and Marta Quist founded the school."},
		{"The patent was acquired by Brandt Group.", "The patent was acquired by Carrow Holdings."},
		{"Carrow Holdings acquired the mill from Brandt Group in 2019.", "Brandt Group acquired the mill from Carrow Holdings in 2019."},
		{"The treaty was written by Norland.", "The treaty was written by Sudland and Norland."},
		{"In 2020, Norrland Bank lost 12 percent of its customers.", "In 2020, Sandberg Bank lost 19 percent of its customers."},
	} {
		for _, order := range [][2]string{c, {c[1], c[0]}} {
			got, why := judge(order[0], order[1])
			require.NotEqual(t, model.Contradiction, got, "%s\n%s\n%s", order[0], order[1], why)
		}
	}
}

// TestAnotherRankOrNameIsNoDuplicate: in languages other than English, and of names that "and" joins.
func TestAnotherRankOrNameIsNoDuplicate(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"Brandt es el tercer mayor fabricante de bombas de Europa.", "Brandt es el mayor fabricante de bombas de Europa."},
		{"Le lac Morel est le deuxième plus profond d'Europe.", "Le lac Morel est le plus profond d'Europe."},
		{"Das Rathaus wurde von Otto Reiners und Emil Kastner entworfen.", "Das Rathaus wurde von Emil Reiners und Otto Kastner entworfen."},
		{"22 Prozent B der Ernte gingen verloren.", "22 Prozent A der Ernte gingen verloren."},
		{"12 percent A shares were sold.", "12 percent B shares were sold."},
	} {
		for _, order := range [][2]string{c, {c[1], c[0]}} {
			got, why := judge(order[0], order[1])
			require.NotEqual(t, model.Duplicate, got, "%s\n%s\n%s", order[0], order[1], why)
		}
	}
}

// TestTheGuardAndTheMarksReadLettersAlike: where the guard sees another letter behind a name in the newer statement, the rules of the engine see another
// mark, so that no duplicate of the engine is taken back for a letter; and where a capital stands behind a name, either both see it or neither.
func TestTheGuardAndTheMarksReadLettersAlike(t *testing.T) {
	t.Parallel()
	guarded := func(elder, newer string) bool {
		v, err := model.JudgeTask{Elder: model.Statement{Text: elder}, Newer: model.Statement{Text: newer}}.Check(model.JudgeReply{Relation: "duplicate"})
		require.NoError(t, err)
		return v.Drops[model.DropOtherName] > 0
	}
	marked := func(elder, newer string) bool { return otherMarks(read(elder), read(newer)) != "" }
	tried := 0
	for _, pairs := range topics(t) {
		for _, p := range pairs {
			for _, at := range swapToken.FindAllStringIndex(p.Elder, -1) {
				if word := p.Elder[at[0]:at[1]]; len(word) < 4 || !upperFirst(word) {
					continue
				}
				for _, letters := range [][2]string{{" B", " D"}, {" C", " F"}} {
					one, other := p.Elder[:at[1]]+letters[0]+p.Elder[at[1]:], p.Elder[:at[1]]+letters[1]+p.Elder[at[1]:]
					tried++
					if guarded(one, other) {
						require.True(t, marked(one, other), "%s\n%s", one, other)
					}
				}
			}
		}
	}
	require.Greater(t, tried, 2000)
	for _, c := range []struct {
		elder, newer string
		differ       bool
	}{
		{"Vitamin B helps.", "Vitamin D helps.", true},
		{"The cause is hepatitis A.", "The cause is hepatitis B.", true},
		{"Das Vitamin B hilft.", "Das Vitamin D hilft.", true},
		{"La vitamine B aide.", "La vitamine D aide.", true},
		{"La vitamina B ayuda.", "La vitamina D ayuda.", true},
		{"The bond is rated plan A+.", "The bond is rated plan B+.", true},
		{"A bridge was closed.", "The bridge was closed.", false},
		{"He saw a bridge.", "He saw the bridge.", false},
		{"L'eau monte.", "L'eau monte.", false},
	} {
		require.Equal(t, c.differ, guarded(c.elder, c.newer), "guard: %s | %s", c.elder, c.newer)
		require.Equal(t, c.differ, marked(c.elder, c.newer), "marks: %s | %s", c.elder, c.newer)
	}
}
